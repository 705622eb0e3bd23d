// Errors as values, with the chain of what was tried around them.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace lockstep {

// What went wrong, for a person: the thing, the cause, and where there is one the remedy. Immutable but for `within`.
class Error {
 public:
    explicit Error(std::string message) : message_(std::move(message)) {}

    // Says what was being done: Error("no such file").within("cannot read a.textproto") reads
    // "cannot read a.textproto: no such file".
    Error within(const std::string& context) && {
        message_.insert(0, context + ": ");
        return std::move(*this);
    }
    const std::string& message() const { return message_; }

 private:
    std::string message_;
};

// A value or the error that stands in its place. Reading the one that is not there aborts.
template <class T>
class [[nodiscard]] Result {
 public:
    Result(T value) : held_(std::move(value)) {}      // NOLINT: `return value;` is the point
    Result(Error error) : held_(std::move(error)) {}  // NOLINT: `return Error(...);` is the point

    bool ok() const { return held_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& value() & { return std::get<0>(held_); }
    const T& value() const& { return std::get<0>(held_); }
    T&& value() && { return std::get<0>(std::move(held_)); }
    const Error& error() const& { return std::get<1>(held_); }
    Error&& error() && { return std::get<1>(std::move(held_)); }

 private:
    std::variant<T, Error> held_;
};

// Success, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}  // NOLINT: `return Error(...);` is the point

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const& { return *error_; }
    Error&& error() && { return std::move(*error_); }

 private:
    std::optional<Error> error_;
};

}  // namespace lockstep
