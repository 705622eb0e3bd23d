#include "transport/rdma/stock.h"

#include "transport/logger.h"

#include <algorithm>
#include <utility>

namespace lockstep::transport::rdma {

void RestingNumbers::add(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back({number, std::chrono::steady_clock::now() + rest_});
}

bool RestingNumbers::has(std::uint32_t number) {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    while (!numbers_.empty() && numbers_.front().until <= now) numbers_.pop_front();
    return std::any_of(numbers_.begin(), numbers_.end(), [&](const Resting& one) { return one.number == number; });
}

Stock::Stock(Device& device, RestingNumbers& resting, ibv_pd* domain, ibv_cq* queue, unsigned sends,
             Workers::Strand strand)
    : device_(device), resting_(resting), domain_(domain), queue_(queue), sends_(sends), strand_(std::move(strand)) {}

Stock::~Stock() = default;

Result<std::shared_ptr<QueuePair>> Stock::take() {
    fill();
    {
        const std::lock_guard lock(mutex_);
        if (!ready_.empty()) {
            std::shared_ptr<QueuePair> pair = std::move(ready_.back());
            ready_.pop_back();
            return pair;
        }
    }
    return make();
}

Result<std::shared_ptr<QueuePair>> Stock::make() {
    std::vector<std::shared_ptr<QueuePair>> passed_over;
    for (int tries = 0; tries < kTries; ++tries) {
        auto made = QueuePair::make(device_, domain_, queue_, sends_);
        if (!made) return std::move(made).error();
        std::shared_ptr<QueuePair> pair = std::move(made).value();
        if (!resting_.has(pair->number())) return pair;
        passed_over.push_back(std::move(pair));  // kept until a better one is found, else its number comes again
    }
    return Error("cannot make a queue pair: " + device_.choice().device +
                 " gives out only numbers that were used a moment ago");
}

void Stock::fill() {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(filling_, true)) return;
    }
    post(strand_, [this] {
        for (;;) {
            {
                const std::lock_guard lock(mutex_);
                filling_ = ready_.size() < kReady;
                if (!filling_) return;
            }
            auto pair = make();
            const std::lock_guard lock(mutex_);
            if (pair) {
                ready_.push_back(std::move(pair).value());
                continue;
            }
            logger().error("{}", pair.error().message());
            filling_ = false;  // the next one who takes tries again
            return;
        }
    });
}

void Stock::bury(std::shared_ptr<QueuePair> pair) {
    resting_.add(pair->number());
    // Whoever holds it still does so in a job that was posted before.
    post(strand_, [held = std::move(pair)]() mutable { held.reset(); });
}

}  // namespace lockstep::transport::rdma
