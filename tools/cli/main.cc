// lockstep: looks after replicas: what this machine can do for one, what is on its disk, and how running ones are.
#include "tools/cli/log.h"
#include "tools/cli/output.h"
#include "tools/cli/recover.h"
#include "tools/cli/snapshot.h"
#include "tools/cli/status.h"
#include "tools/cli/words.h"

#include <lockstep/doctor.h>
#include <lockstep/options.h>

#include <CLI/CLI.hpp>

#include <iostream>
#include <string>

namespace lockstep::cli {
namespace {

// Of the member that the config is of; its peers are the others.
Result<Question> question_of(const std::string& config) {
    auto options = Options::from_file(config);
    if (!options) return std::move(options).error();
    Question question;
    question.ring_bytes = options.value().ring_bytes;
    question.rdma_device = options.value().rdma_device;
    question.rdma_port = options.value().rdma_port;
    question.rdma_gid_index = options.value().rdma_gid_index;
    for (const Member& member : options.value().members) {
        if (member.id == options.value().id) question.address = member.address.substr(0, member.address.rfind(':'));
        else question.peers.push_back(member.address);
    }
    return question;
}

const char* mark(Finding::Kind kind) {
    switch (kind) {
        case Finding::Kind::fact: return "  ";
        case Finding::Kind::good: return "ok";
        case Finding::Kind::problem: return "!!";
    }
    return "  ";
}

// 0, or 1 where there is a problem.
int doctor(const Question& question) {
    int status = 0;
    for (const Finding& finding : examine(question)) {
        std::cout << mark(finding.kind) << ' ' << finding.subject << ": ";
        for (const char c : finding.text) std::cout << c << (c == '\n' ? "   " : "");
        std::cout << '\n';
        if (!finding.remedy.empty()) std::cout << "   -> " << finding.remedy << '\n';
        if (finding.kind == Finding::Kind::problem) status = 1;
    }
    return status;
}

int run(int argc, char** argv) {
    CLI::App app("Looks after Lockstep replicas.");
    app.require_subcommand(1);
    CLI::App* command = app.add_subcommand("doctor", "What this machine can do for a replica, and what to change");
    Question asked;
    std::string config;
    CLI::Option* file = command->add_option("--config", config, "Take the rest from a replica's config")
                            ->type_name("FILE");
    command->add_option("--address", asked.address, "The replica's own address")->excludes(file)->capture_default_str();
    command->add_option("--peer", asked.peers, "Another replica's address; may be given several times")
        ->type_name("HOST[:PORT]")
        ->excludes(file);
    command->add_option("--device", asked.rdma_device, "Use this RDMA device")->excludes(file);
    command->footer("Ends with 1 if there is a problem, marked !!, with 2 if it cannot look.");
    const auto log_command = add_log_command(app);
    const auto snapshot_command = add_snapshot_command(app);
    const auto recover_command = add_recover_command(app);
    const auto status_command = add_status_command(app);
    if (const auto wrong = wrong_command(app, argc, argv)) return complain(Error(*wrong + "; --help explains them"));
    CLI11_PARSE(app, argc, argv);
    for (const auto& run_command : {log_command, snapshot_command, recover_command, status_command})
        if (const int status = run_command(); status >= 0) return status;
    if (!config.empty()) {
        auto question = question_of(config);
        if (!question) return complain(question.error());
        asked = std::move(question).value();
    }
    return doctor(asked);
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) { return lockstep::cli::run(argc, argv); }
