#include "tools/counter/session.h"

#include "tools/counter/address.h"
#include "tools/counter/frame.h"
#include "tools/counter/local.h"
#include "tools/counter/translate.h"

#include <utility>

namespace lockstep::counter {

Session::Session(Socket socket, Shared& shared, const Hooks& hooks, std::uint64_t id)
    : Connection(std::move(socket)), shared_(shared), hooks_(hooks), parser_(shared.limits) {
    client_.id = id;
    client_.since = Clock::now();
}

void Session::start() {
    prepare();
    boost::system::error_code ignored;
    client_.address = format_endpoint(socket().remote_endpoint(ignored));
    client_.local_address = format_endpoint(socket().local_endpoint(ignored));
    read_more();
}

void Session::on_closed() { hooks_.closed(*this); }

void Session::on_end() {
    input_ended_ = true;
    process();
}

void Session::process() {
    // An answer that comes while commands are taken apart is met by the loop below.
    if (processing_ || closed()) return;
    processing_ = true;
    bool held_up = false;
    do {
        do {
            held_up = take_commands();
        } while (send_off());
        flush();
    } while (held_up && !closed() && output_bytes() < kOutputHighWaterBytes);
    processing_ = false;
    if (closed()) return;
    if (input_ended_) {
        if (!under_way_ && filling().empty() && output_bytes() < kOutputHighWaterBytes) close_when_sent();
    } else if (!filling().sealed && output_bytes() < kOutputHighWaterBytes) {
        read_more();
    }
}

bool Session::take_commands() {
    while (!closed() && !filling().sealed) {
        if (output_bytes() >= kOutputHighWaterBytes) return true;
        const RequestParser::Step step = parser_.next(input().unread());
        if (step == RequestParser::Step::incomplete) return false;
        if (step == RequestParser::Step::failed) {
            ++shared_.protocol_errors;
            refuse("ERR " + parser_.error());
            filling().sealed = true;
            filling().closes = true;
            return false;
        }
        if (step == RequestParser::Step::command) {
            if (same_name(parser_.args()[0], kUpstreamCommand)) {
                upgrade();
                return false;
            }
            take_command(parser_.args());
        }
        input().consume(parser_.consumed());
    }
    return false;
}

void Session::take_command(std::span<const std::string_view> args) {
    ++shared_.commands;
    const CommandSpec* spec = find_command(args[0]);
    if (spec == nullptr) return refuse(unknown_command_error(args));
    if (!spec->takes(args.size())) return refuse(arity_error(spec->name));
    if (spec->on_data()) return take_data_command(*spec, args);
    const Resp before = client_.resp;
    run_local(*spec, args, shared_, client_, literal_begins());
    literal_ends();
    Pipeline& pipeline = filling();
    if (client_.quits) pipeline.closes = pipeline.sealed = true;
    // A group speaks one version of the protocol.
    if (client_.resp != before && pipeline.commands > 0) pipeline.sealed = true;
}

void Session::take_data_command(const CommandSpec& spec, std::span<const std::string_view> args) {
    if (spec.adds && shared_.machine.bytes() > shared_.limits.memory_bytes) return refuse(kOutOfMemory);
    Pipeline& pipeline = filling();
    Request& request = pipeline.request;
    GroupWriter group(request.group);
    if (pipeline.commands == 0) group.begin(client_.resp);
    const std::string error = translate(spec, args, shared_.limits, group);
    if (!error.empty()) return refuse(error);
    ++pipeline.commands;
    request.writes = request.writes || spec.writes;
    if (request.group.size() >= kGroupBytes) pipeline.sealed = true;
}

void Session::refuse(std::string_view error) {
    append_error(literal_begins(), error);
    literal_ends();
}

void Session::literal_ends() {
    Pipeline& pipeline = filling();
    pipeline.literals.push_back({pipeline.commands, pipeline.literal_bytes.size()});
    if (pipeline.literal_bytes.size() >= kLiteralBytes) pipeline.sealed = true;
}

bool Session::send_off() {
    Pipeline& pipeline = filling();
    if (closed() || under_way_ || pipeline.empty()) return false;
    if (pipeline.commands == 0) {
        output() += pipeline.literal_bytes;
        const bool closes = pipeline.closes;
        reset(pipeline);
        if (closes) close_when_sent();
        return !closes;
    }
    under_way_ = true;
    filling_ = 1 - filling_;
    pipeline.request.requester = std::static_pointer_cast<Session>(shared_from_this());
    shared_.router.submit(pipeline.request);
    return !filling().empty() || input().size() > 0;
}

void Session::answered(Request& request) {
    Pipeline& pipeline = pipelines_[1 - filling_];
    under_way_ = false;
    const bool closes = pipeline.closes;
    if (!closed()) {
        if (request.fate == Fate::applied) {
            splice(pipeline, request.reply);
        } else {
            std::string errors;
            append_errors(pipeline, errors);
            splice(pipeline, errors);
        }
    }
    reset(pipeline);
    if (closes) return close_when_sent();
    process();
}

void Session::append_errors(const Pipeline& pipeline, std::string& out) const {
    const Request& request = pipeline.request;
    GroupReader group(request.group);
    for (Operation operation; group.next(operation);) {
        const CommandSpec& spec = *find_opcode(static_cast<std::uint8_t>(operation.id));
        append_error(out, not_applied(spec.name, request.fate, request.reason, shared_.limits));
    }
}

void Session::splice(const Pipeline& pipeline, std::string_view replies) {
    std::string& out = output();
    std::uint32_t passed = 0;
    std::size_t literal_begin = 0;
    for (const Literal& literal : pipeline.literals) {
        std::size_t bytes = 0;
        for (; passed < literal.after; ++passed) bytes += reply_bytes(replies.substr(bytes)).value_or(0);
        out.append(replies.substr(0, bytes));
        replies.remove_prefix(bytes);
        out.append(pipeline.literal_bytes, literal_begin, literal.end - literal_begin);
        literal_begin = literal.end;
    }
    out.append(replies);
}

void Session::reset(Pipeline& pipeline) {
    clear_and_trim(pipeline.request.group);
    clear_and_trim(pipeline.request.reply);
    pipeline.request.writes = false;
    pipeline.commands = 0;
    pipeline.literals.clear();
    clear_and_trim(pipeline.literal_bytes);
    pipeline.sealed = false;
    pipeline.closes = false;
}

void Session::upgrade() {
    const auto args = parser_.args();
    if (args.size() != 2 || args[1] != kUpstreamVersion || under_way_ || !filling().empty()) {
        refuse("ERR " + std::string(kUpstreamCommand) + " is for other replicas of this version, on a new connection");
        filling().sealed = true;
        filling().closes = true;
        return;
    }
    input().consume(parser_.consumed());
    const auto self = shared_from_this();
    hooks_.closed(*this);
    hooks_.upgraded(release(), input().unread());
}

}  // namespace lockstep::counter
