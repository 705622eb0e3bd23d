#include "tools/bench/limit.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <thread>

namespace lockstep::bench {

namespace {
constexpr std::size_t kReadBytes = std::size_t{1} << 18;
}

// A blocking read where blocking is asked for: the quickest that Asio has, so that the limit is one.
int run_peer(int descriptor, std::size_t bytes, Polling polling) {
    boost::asio::io_context context;
    boost::asio::ip::tcp::socket socket(context);
    boost::system::error_code error;
    socket.assign(boost::asio::ip::tcp::v4(), descriptor, error);
    if (!error) socket.non_blocking(polling != Polling::blocking, error);
    if (error) return 1;
    std::vector<char> buffer(kReadBytes);
    std::uint64_t total = 0;
    std::uint64_t answered = 0;
    while (true) {
        const std::size_t count = socket.read_some(boost::asio::buffer(buffer), error);
        if (error == boost::asio::error::would_block) {
            std::this_thread::yield();  // there may be fewer cores than spinning processes
            continue;
        }
        if (error) return 0;
        total += count;
        const std::uint64_t complete = total / bytes;
        if (complete == answered) continue;
        answered = complete;
        boost::asio::write(socket, boost::asio::buffer(&answered, sizeof answered), error);
        if (error) return 0;
    }
}

}  // namespace lockstep::bench
