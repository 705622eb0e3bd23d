// Asio completion tokens for a replica: callbacks, futures, coroutines. Needs Boost.Asio 1.81 or newer; nothing else of
// the library does.
#pragma once

#include <lockstep/replica.h>
#include <lockstep/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep::asio {

// An Outcome whose reply is its own: it may be kept.
struct OwnedOutcome {
    Fate fate = Fate::unknown;
    Reason reason = Reason::none;
    ReplicaId leader;
    Index index;
    std::vector<std::byte> reply;

    explicit OwnedOutcome(const Outcome& outcome = {})
        : fate(outcome.fate),
          reason(outcome.reason),
          leader(outcome.leader),
          index(outcome.index),
          reply(outcome.reply.begin(), outcome.reply.end()) {}
};

namespace detail {

// Runs `handler` with the outcome on its own executor, never on the protocol thread.
template <class Handler, class Executor>
Replica::Done completion(Handler handler, const Executor& fallback) {
    auto executor = boost::asio::get_associated_executor(handler, fallback);
    // std::function wants to be copied, which a handler need not be; the guard keeps the executor's context running.
    struct State {
        Handler handler;
        boost::asio::executor_work_guard<decltype(executor)> work;
    };
    auto state = std::make_shared<State>(State{std::move(handler), boost::asio::make_work_guard(executor)});
    return [state](const Outcome& outcome) {
        boost::asio::dispatch(state->work.get_executor(), [state, owned = OwnedOutcome(outcome)]() mutable {
            state->work.reset();
            std::move(state->handler)(std::move(owned));
        });
    };
}

}  // namespace detail

// Replica::propose, completing with `void(OwnedOutcome)` on the token's executor, else on `executor`. The command is
// copied before this returns. Threads, limits and errors as there; one allocation per call for the handler.
template <class Executor, class CompletionToken>
auto async_propose(Replica& replica, const Executor& executor, BytesView command, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(OwnedOutcome)>(
        [&replica, executor](auto handler, BytesView bytes) {
            replica.propose(bytes, detail::completion(std::move(handler), executor));
        },
        token, command);
}

// Replica::read, likewise. The state machine is not locked where the handler runs: this orders what the service has
// already done; to look at its state, use Replica::read, whose callback runs on the protocol thread.
template <class Executor, class CompletionToken>
auto async_read(Replica& replica, const Executor& executor, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(OwnedOutcome)>(
        [&replica, executor](auto handler) {
            replica.read(detail::completion(std::move(handler), executor));
        },
        token);
}

}  // namespace lockstep::asio
