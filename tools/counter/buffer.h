// Bytes that come in at one end and go out at the other.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::counter {

// A buffer that has grown past this is given back when it is empty: one large command is not paid for ever after.
inline constexpr std::size_t kKeptBytes = 512 * 1024;

inline void clear_and_trim(std::string& bytes) {
    bytes.clear();
    if (bytes.capacity() > kKeptBytes) std::string().swap(bytes);
}

// Input of a connection. Room is made by moving what is unread to the front, or by growing; used by one thread.
class InputBuffer {
 public:
    std::string_view unread() const { return {bytes_.get() + begin_, end_ - begin_}; }
    std::size_t size() const { return end_ - begin_; }
    void consume(std::size_t bytes) {
        begin_ += bytes;
        if (begin_ != end_) return;
        begin_ = end_ = 0;
        if (capacity_ <= kKeptBytes) return;
        bytes_.reset();
        capacity_ = 0;
    }
    // At least `bytes` of room behind what is unread.
    char* room(std::size_t bytes) {
        if (capacity_ - end_ >= bytes) return bytes_.get() + end_;
        if (capacity_ - size() >= bytes && begin_ >= size()) {
            std::memcpy(bytes_.get(), bytes_.get() + begin_, size());
        } else {
            const std::size_t capacity = (size() + bytes) * 2;
            std::unique_ptr<char[]> grown(new char[capacity]);
            if (size() > 0) std::memcpy(grown.get(), bytes_.get() + begin_, size());
            bytes_ = std::move(grown);
            capacity_ = capacity;
        }
        end_ = size();
        begin_ = 0;
        return bytes_.get() + end_;
    }
    std::size_t room_left() const { return capacity_ - end_; }
    void added(std::size_t bytes) { end_ += bytes; }

 private:
    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace lockstep::counter
