#include "tools/counter/load.h"

#include "tools/counter/address.h"
#include "tools/counter/ask.h"
#include "tools/counter/ledger.h"
#include "tools/counter/load_connection.h"
#include "tools/counter/resp.h"

#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;

// One run. All on one thread.
class Load {
 public:
    Load(const LoadOptions& options, std::vector<asio::ip::tcp::endpoint> servers, std::int64_t before,
         LoadControl* control)
        : options_(options), control_(control), started_(Clock::now()), ledger_(before, started_), signals_(io_),
          progress_(io_), publish_(io_), end_(io_), servers_(std::move(servers)) {}

    Result<void> open_journal() {
        if (options_.journal.empty()) return {};
        journal_.open(options_.journal, std::ios::app);
        if (!journal_) return Error("cannot write the journal " + options_.journal);
        return {};
    }

    void run() {
        catch_signals();
        for (std::uint32_t i = 0; i < options_.connections; ++i) {
            connections_.push_back(
                std::make_shared<LoadConnection>(io_, options_, ledger_, journal_, servers_, i, started_));
            connections_.back()->start();
        }
        end_.expires_at(started_ + std::chrono::microseconds(static_cast<std::int64_t>(options_.seconds * 1e6)));
        end_.async_wait([this](error_code error) {
            if (!error) finish();
        });
        show_progress();
        if (control_ == nullptr) {
            io_.run();
            return;
        }
        take_control();
        publish();
        io_.run();
        const std::lock_guard lock(control_->mutex_);
        control_->handler_ = nullptr;
    }

    Ledger& ledger() { return ledger_; }

 private:
    void catch_signals() {
        signals_.add(SIGUSR1);
        signals_.add(SIGINT);
        signals_.add(SIGTERM);
        wait_for_signal();
    }

    void wait_for_signal() {
        signals_.async_wait([this](error_code error, int signal) {
            if (error) return;
            if (signal != SIGUSR1) return finish();
            ledger_.event(Clock::now());
            wait_for_signal();
        });
    }

    void take_control() {
        const std::lock_guard lock(control_->mutex_);
        control_->handler_ = [this](LoadControl::Act what) {
            asio::post(io_, [this, what, now = Clock::now()] {
                if (what == LoadControl::Act::finish) return finish();
                ledger_.event(now);
            });
        };
    }

    // Lets other threads see how far the load is.
    void publish() {
        control_->acked_.store(ledger_.report().acked, std::memory_order_relaxed);
        if (finished_) return;
        publish_.expires_after(std::chrono::milliseconds(1));
        publish_.async_wait([this](error_code) { publish(); });
    }

    void show_progress() {
        progress_.expires_after(std::chrono::seconds(1));
        progress_.async_wait([this](error_code error) {
            if (error || finished_) return;
            journal_.flush();
            const LoadReport& report = ledger_.report();
            if (!options_.quiet) {
                const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_).count();
                std::fprintf(stderr, "%4lld s: %llu acknowledged, %llu more in the last second, %llu unknown\n",
                             static_cast<long long>(seconds), static_cast<unsigned long long>(report.acked),
                             static_cast<unsigned long long>(report.acked - shown_),
                             static_cast<unsigned long long>(report.unknown));
            }
            shown_ = report.acked;
            if (options_.count > 0 && report.acked >= options_.count) return finish();
            show_progress();
        });
    }

    void finish() {
        finished_ = true;
        for (const auto& connection : connections_) connection->finish();
        signals_.cancel();
        progress_.cancel();
        end_.cancel();
    }

    const LoadOptions& options_;
    LoadControl* const control_;
    asio::io_context io_{1};
    const Clock::time_point started_;
    Ledger ledger_;
    std::ofstream journal_;
    asio::signal_set signals_;
    asio::steady_timer progress_;
    asio::steady_timer publish_;
    asio::steady_timer end_;
    bool finished_ = false;
    std::uint64_t shown_ = 0;
    const std::vector<asio::ip::tcp::endpoint> servers_;
    std::vector<std::shared_ptr<LoadConnection>> connections_;
};

namespace {

// How long the servers may take to answer the questions before and after the load.
constexpr std::chrono::seconds kQuestionPatience{10};

Result<std::vector<asio::ip::tcp::endpoint>> resolve(const std::vector<std::string>& servers) {
    asio::io_context io;
    asio::ip::tcp::resolver resolver(io);
    std::vector<asio::ip::tcp::endpoint> endpoints;
    for (const std::string& server : servers) {
        const auto address = parse_address(server);
        if (!address) return Error(address.error().message());
        error_code error;
        const auto found = resolver.resolve(address.value().host, std::to_string(address.value().port), error);
        if (error || found.empty()) return Error("server \"" + server + "\" is not known: " + error.message());
        endpoints.push_back(*found.begin());
    }
    return endpoints;
}

// Reads the counter, from whichever server answers. A key that is missing counts as 0.
Result<std::int64_t> read_value(const LoadOptions& options, const std::vector<asio::ip::tcp::endpoint>& servers) {
    const auto deadline = Clock::now() + kQuestionPatience;
    std::string request;
    append_array(request, 2);
    append_bulk(request, "GET");
    append_bulk(request, options.key);
    std::string last = "no server answered";
    for (std::size_t attempt = 0; Clock::now() < deadline; ++attempt) {
        const auto reply = ask_once(servers[attempt % servers.size()], request, std::chrono::milliseconds(3000));
        if (reply && reply.value() == "$-1\r\n") return std::int64_t{0};
        if (reply && reply.value()[0] == '$') {
            const std::string& bytes = reply.value();
            const std::size_t begin = bytes.find("\r\n") + 2;
            if (const auto value = parse_integer({bytes.data() + begin, bytes.size() - begin - 2})) return *value;
            return Error("key \"" + options.key + "\" holds no integer");
        }
        last = reply ? reply.value().substr(0, reply.value().size() - 2) : reply.error().message();
        pause_for(std::chrono::milliseconds(10));
    }
    return Error("cannot read key \"" + options.key + "\": " + last);
}

}  // namespace

Result<LoadReport> run_load(const LoadOptions& options, LoadControl* control) {
    auto servers = resolve(options.servers);
    if (!servers) return std::move(servers).error();
    const auto before = read_value(options, servers.value());
    if (!before) return Error(before.error().message());
    Load load(options, servers.value(), before.value(), control);
    if (auto opened = load.open_journal(); !opened) return std::move(opened).error();
    load.run();
    const auto after = read_value(options, servers.value());
    if (after) load.ledger().finish(after.value());
    return load.ledger().report();
}

int print_report(const LoadReport& report) {
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("acknowledged %llu, unknown %llu, refused and tried again %llu, connections renewed %llu\n",
                number(report.acked), number(report.unknown), number(report.refused), number(report.reconnects));
    std::printf("longest time without an acknowledgement: %.3f ms\n", static_cast<double>(report.longest_gap_us) / 1e3);
    if (!report.event_gaps_us.empty()) {
        auto gaps = report.event_gaps_us;
        std::sort(gaps.begin(), gaps.end());
        const auto at = [&](double share) {
            return static_cast<double>(gaps[static_cast<std::size_t>(share * static_cast<double>(gaps.size() - 1))]) /
                   1e3;
        };
        std::printf(
            "from an event to the next acknowledgement, %zu events: median %.3f ms, p99 %.3f ms, longest %.3f ms\n",
            gaps.size(), at(0.5), at(0.99), at(1.0));
    }
    for (const std::string& violation : report.violations) std::printf("WRONG: %s\n", violation.c_str());
    if (!report.value_read) {
        std::printf("the counter could not be read at the end: nothing is proven\n");
        return report.violations.empty() ? 2 : 1;
    }
    std::printf("the counter grew by %lld, which is %s\n",
                static_cast<long long>(report.value_after - report.value_before),
                report.violations.empty() ? "right: acknowledged <= growth <= acknowledged + unknown" : "WRONG");
    return report.violations.empty() ? 0 : 1;
}

}  // namespace lockstep::counter
