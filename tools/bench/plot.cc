// The latency distributions as an SVG picture: latency over percentile, both stretched so that the tail is seen.
#include "tools/bench/cluster.h"
#include "tools/bench/results.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace lockstep::bench {
namespace {

constexpr double kWidth = 1000, kLeast = 560, kLeft = 70, kRight = 230, kTop = 40, kBottom = 60;
constexpr double kLegendLine = 17;
constexpr double kNines = 4;  // the right end is the 99.99th percentile
constexpr int kPoints = 160;
constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#444444"};

struct Line {
    std::string name;
    const Histogram* latency;
    bool limit;
};

std::vector<Line> lines_of(const std::vector<Cell>& cells) {
    std::vector<Line> lines;
    for (const Cell& cell : cells) {
        std::string what = cell.key.transport + ", " + size_text(cell.key.bytes) + ", depth " +
                           std::to_string(cell.key.depth);
        if (cell.key.polling != Polling::blocking) what += std::string(", ") + to_string(cell.key.polling);
        if (cell.latency.total() > 0) lines.push_back({what, &cell.latency, false});
        if (cell.limit_latency.total() > 0) lines.push_back({what + ": limit", &cell.limit_latency, true});
    }
    return lines;
}

class Canvas {
 public:
    Canvas(double low_us, double high_us, std::size_t lines)
        : low_(std::log10(low_us)),
          high_(std::log10(high_us)),
          height_(std::max(kLeast, kTop + kBottom + kLegendLine * static_cast<double>(lines))) {
        out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << ' ' << height_
             << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
             << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
        text(kLeft, kTop - 16, "start", "Latency by percentile: three replicas on one machine");
    }
    // `nines`: 1 is the 90th percentile, 2 the 99th.
    double x(double nines) const { return kLeft + nines / kNines * (kWidth - kLeft - kRight); }
    double y(double us) const {
        return height_ - kBottom - (std::log10(us) - low_) / (high_ - low_) * (height_ - kTop - kBottom);
    }
    void text(double at_x, double at_y, const char* anchor, const std::string& words) {
        out_ << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor << "\">" << words
             << "</text>\n";
    }
    void rule(double x1, double y1, double x2, double y2) {
        out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
             << "\" stroke=\"#dddddd\"/>\n";
    }
    void axes() {
        for (int power = static_cast<int>(low_); power <= static_cast<int>(high_); ++power) {
            const double us = std::pow(10.0, power);
            rule(kLeft, y(us), kWidth - kRight, y(us));
            std::ostringstream label;
            label << us << " us";
            text(kLeft - 6, y(us) + 4, "end", label.str());
        }
        const std::pair<double, const char*> marks[] = {{0, "0"}, {std::log10(2.0), "50"}, {1, "90"}, {2, "99"},
                                                         {3, "99.9"}, {4, "99.99"}};
        for (const auto& [nines, label] : marks) {
            rule(x(nines), kTop, x(nines), height_ - kBottom);
            text(x(nines), height_ - kBottom + 18, "middle", label);
        }
        text((kLeft + kWidth - kRight) / 2, height_ - kBottom + 40, "middle", "percentile");
    }
    void curve(const Line& line, std::size_t number) {
        const std::string style = std::string("stroke=\"") + kColours[number % std::size(kColours)] +
                                  "\" stroke-width=\"1.6\"" + (line.limit ? " stroke-dasharray=\"5 4\"" : "");
        out_ << "<polyline fill=\"none\" " << style << " points=\"";
        for (int i = 0; i <= kPoints; ++i) {
            const double nines = kNines * i / kPoints;
            out_ << x(nines) << ',' << y(std::max(line.latency->at_us(1 - std::pow(10.0, -nines)), 0.001)) << ' ';
        }
        out_ << "\"/>\n";
        const double at = kTop + 8 + kLegendLine * static_cast<double>(number);
        out_ << "<line x1=\"" << kWidth - kRight + 12 << "\" y1=\"" << at << "\" x2=\"" << kWidth - kRight + 40
             << "\" y2=\"" << at << "\" " << style << "/>\n";
        text(kWidth - kRight + 46, at + 4, "start", line.name);
    }
    std::string finish() {
        out_ << "</svg>\n";
        return out_.str();
    }

 private:
    const double low_;
    const double high_;
    const double height_;
    std::ostringstream out_;
};

}  // namespace

Result<void> Results::write_plot(const std::string& path) const {
    const std::vector<Line> lines = lines_of(cells_);
    double low = 1e9;
    double high = 1;
    for (const Line& line : lines) {
        low = std::min(low, std::max(line.latency->at_us(0), 0.001));
        high = std::max(high, line.latency->at_us(1 - std::pow(10.0, -kNines)));
    }
    if (lines.empty()) low = 1;
    const double bottom = std::pow(10.0, std::floor(std::log10(low)));
    const double top = std::pow(10.0, std::floor(std::log10(high)) + 1);
    Canvas canvas(bottom, top, lines.size());
    canvas.axes();
    for (std::size_t i = 0; i < lines.size(); ++i) canvas.curve(lines[i], i);
    return write_file(path, canvas.finish());
}

}  // namespace lockstep::bench
