// The latency distributions as an SVG picture: a panel per payload, latency over percentile, both stretched so that the
// tail is seen. A colour means the same in all panels; a limit has that of what it limits, dashed.
#include "tools/bench/cluster.h"
#include "tools/bench/results.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace lockstep::bench {
namespace {

constexpr double kPanel = 280, kGap = 40, kLeft = 64, kRight = 210, kTop = 64, kHeight = 400, kBottom = 56;
constexpr double kLegendLine = 18;
constexpr double kNines = 4;  // the right end is the 99.99th percentile
constexpr int kPoints = 160;
constexpr const char* kColours[] = {"#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#17a2a2", "#d1578f",
                                    "#444444"};

struct Line {
    std::string name;       // the same for all payloads
    std::size_t colour = 0;
    std::size_t bytes = 0;
    const Histogram* latency = nullptr;
    bool limit = false;
};

template <class T>
std::size_t number_of(std::vector<T>& known, const T& one) {
    const auto found = std::ranges::find(known, one);
    if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
    known.push_back(one);
    return known.size() - 1;
}

std::vector<Line> lines_of(const std::vector<Cell>& cells) {
    std::vector<Line> lines;
    std::vector<std::string> names;
    for (const Cell& cell : cells) {
        std::string rest = ", depth " + std::to_string(cell.key.depth);
        if (cell.key.polling != Polling::blocking) rest += std::string(", ") + to_string(cell.key.polling);
        std::string name = cell.key.transport + rest;
        const std::string limit = name + ": limit";
        if (cell.key.durability != Durability::memory)
            name = cell.key.transport + ", " + lockstep::to_string(cell.key.durability) + rest;
        const std::size_t colour = number_of(names, name);
        const auto add = [&](const std::string& what, const Histogram& latency, bool dashed) {
            const bool there = std::ranges::any_of(lines, [&](const Line& line) {
                return line.name == what && line.bytes == cell.key.bytes;
            });
            // The network's limit is the same for every durability.
            if (latency.total() > 0 && !there) lines.push_back({what, colour, cell.key.bytes, &latency, dashed});
        };
        add(name, cell.latency, false);
        add(limit, cell.limit_latency, true);
        add(name + ": fdatasync", cell.sync_latency, true);
    }
    return lines;
}

std::string time_text(double us) {
    std::ostringstream text;
    if (us >= 1e6) text << us / 1e6 << " s";
    else if (us >= 1e3) text << us / 1e3 << " ms";
    else text << us << " us";
    return text.str();
}

class Canvas {
 public:
    Canvas(double low_us, double high_us, std::size_t panels, std::size_t names)
        : low_(std::log10(low_us)),
          high_(std::log10(high_us)),
          right_(kLeft + static_cast<double>(panels) * (kPanel + kGap)) {
        const double height = std::max(kHeight, kLegendLine * static_cast<double>(names)) + kTop + kBottom;
        out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << right_ + kRight << ' ' << height
             << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
             << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
        text(kLeft, 20, "start", "Latency by percentile: three replicas on one machine");
    }
    void panel(std::size_t number, std::size_t bytes) {
        left_ = kLeft + static_cast<double>(number) * (kPanel + kGap);
        text(left_ + kPanel / 2, kTop - 10, "middle", size_text(bytes));
        for (int power = static_cast<int>(low_); power <= static_cast<int>(high_); ++power) {
            const double us = std::pow(10.0, power);
            rule(left_, y(us), left_ + kPanel, y(us));
            if (number == 0) text(kLeft - 6, y(us) + 4, "end", time_text(us));
        }
        const std::pair<double, const char*> marks[] = {{0, "0"}, {std::log10(2.0), "50"}, {1, "90"}, {2, "99"},
                                                         {3, "99.9"}, {4, "99.99"}};
        for (const auto& [nines, label] : marks) {
            rule(x(nines), kTop, x(nines), kTop + kHeight);
            text(x(nines), kTop + kHeight + 18, "middle", label);
        }
        text(left_ + kPanel / 2, kTop + kHeight + 40, "middle", "percentile");
    }
    // In the panel begun last.
    void curve(const Line& line) {
        out_ << "<polyline fill=\"none\" " << style(line) << " points=\"";
        for (int i = 0; i <= kPoints; ++i) {
            const double nines = kNines * i / kPoints;
            out_ << x(nines) << ',' << y(std::max(line.latency->at_us(1 - std::pow(10.0, -nines)), 0.001)) << ' ';
        }
        out_ << "\"/>\n";
    }
    void legend(const Line& line, std::size_t number) {
        const double at = kTop + 8 + kLegendLine * static_cast<double>(number);
        out_ << "<line x1=\"" << right_ << "\" y1=\"" << at << "\" x2=\"" << right_ + 30 << "\" y2=\"" << at << "\" "
             << style(line) << "/>\n";
        text(right_ + 36, at + 4, "start", line.name);
    }
    std::string finish() {
        out_ << "</svg>\n";
        return out_.str();
    }

 private:
    // `nines`: 1 is the 90th percentile, 2 the 99th.
    double x(double nines) const { return left_ + nines / kNines * kPanel; }
    double y(double us) const { return kTop + kHeight - (std::log10(us) - low_) / (high_ - low_) * kHeight; }
    static std::string style(const Line& line) {
        return std::string("stroke=\"") + kColours[line.colour % std::size(kColours)] + "\" stroke-width=\"1.6\"" +
               (line.limit ? " stroke-dasharray=\"5 4\"" : "");
    }
    void text(double at_x, double at_y, const char* anchor, const std::string& words) {
        out_ << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" text-anchor=\"" << anchor << "\">" << words
             << "</text>\n";
    }
    void rule(double x1, double y1, double x2, double y2) {
        out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
             << "\" stroke=\"#dddddd\"/>\n";
    }

    const double low_;
    const double high_;
    const double right_;  // of the last panel
    double left_ = kLeft;
    std::ostringstream out_;
};

}  // namespace

Result<void> Results::write_plot(const std::string& path) const {
    const std::vector<Line> lines = lines_of(cells_);
    double low = 1e9;
    double high = 1;
    std::vector<std::size_t> payloads;
    std::vector<std::string> names;
    for (const Line& line : lines) {
        low = std::min(low, std::max(line.latency->at_us(0), 0.001));
        high = std::max(high, line.latency->at_us(1 - std::pow(10.0, -kNines)));
        number_of(payloads, line.bytes);
        number_of(names, line.name);
    }
    if (lines.empty()) low = 1;
    const double bottom = std::pow(10.0, std::floor(std::log10(low)));
    const double top = std::pow(10.0, std::floor(std::log10(high)) + 1);
    Canvas canvas(bottom, top, payloads.size(), names.size());
    for (std::size_t i = 0; i < payloads.size(); ++i) {
        canvas.panel(i, payloads[i]);
        for (const Line& line : lines)
            if (line.bytes == payloads[i]) canvas.curve(line);
    }
    for (std::size_t i = 0; i < names.size(); ++i)
        canvas.legend(*std::ranges::find(lines, names[i], &Line::name), i);
    return write_file(path, canvas.finish());
}

}  // namespace lockstep::bench
