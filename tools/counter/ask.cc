#include "tools/counter/ask.h"

#include "tools/counter/resp.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

#include <functional>
#include <vector>

namespace lockstep::counter {

namespace asio = boost::asio;
using boost::system::error_code;

Result<std::string> ask_once(const asio::ip::tcp::endpoint& server, const std::string& request,
                             std::chrono::milliseconds patience) {
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    std::string reply;
    error_code failed = asio::error::timed_out;
    std::vector<char> buffer(16 * 1024);
    std::function<void()> read = [&] {
        socket.async_read_some(asio::buffer(buffer), [&](error_code error, std::size_t bytes) {
            failed = error;
            if (error) return;
            reply.append(buffer.data(), bytes);
            failed = asio::error::timed_out;
            const auto size = reply_bytes(reply);
            if (size && *size == 0) return read();
            failed = {};
        });
    };
    socket.async_connect(server, [&](error_code error) {
        failed = error;
        if (error) return;
        asio::write(socket, asio::buffer(request), failed);
        if (failed) return;
        failed = asio::error::timed_out;
        read();
    });
    io.run_for(patience);
    if (failed) return Error(failed.message());
    if (!reply_bytes(reply).value_or(0)) return Error("what came is no reply");
    return reply;
}

}  // namespace lockstep::counter
