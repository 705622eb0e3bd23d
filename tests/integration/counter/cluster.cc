#include "tests/integration/counter/cluster.h"

#include "tests/unit/counter/test_client.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace lockstep::counter {
namespace {

pid_t start_program(const std::vector<std::string>& args, const std::string& output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    std::vector<char*> pointers;
    for (const std::string& arg : args) pointers.push_back(const_cast<char*>(arg.c_str()));
    pointers.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return error == 0 ? pid : 0;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string temporary_folder() {
    char folder[] = "/tmp/counter-cluster-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    return folder;
}

int wait_for_exit(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

}  // namespace

Finished run_program(const std::vector<std::string>& args) {
    const std::string folder = temporary_folder();
    Finished finished;
    if (const pid_t pid = start_program(args, folder + "/output")) finished.status = wait_for_exit(pid);
    finished.output = read_file(folder + "/output");
    std::filesystem::remove_all(folder);
    return finished;
}

bool program_exists(const std::string& name) { return run_program({name, "--version"}).status == 0; }

bool within_a_minute(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
}

Cluster::Cluster(std::vector<std::string> flags, Network network)
    : folder_(temporary_folder()), flags_(std::move(flags)), network_(std::move(network)) {
    for (std::uint16_t& port : peer_ports_) port = free_port();
    for (std::uint16_t& port : client_ports_) port = free_port();
    for (int id = 1; id <= kReplicas; ++id) {
        pids_[index(id)] = start_program(command(id), folder_ + "/log" + std::to_string(id));
        EXPECT_NE(pids_[index(id)], 0) << "cannot start " << command(id)[0];
    }
}

Cluster::~Cluster() {
    for (int id = 1; id <= kReplicas; ++id) {
        if (testing::Test::HasFailure()) std::fprintf(stderr, "replica %d:\n%s\n", id, log_of(id).c_str());
        signal(id, SIGKILL);
    }
    std::filesystem::remove_all(folder_);
}

std::vector<std::string> Cluster::command(int id) const {
    std::vector<std::string> args;
    if (network_.run_by) args = network_.run_by(id, data_folder(id));
    for (const std::string& word : {std::string(LOCKSTEP_COUNTER), std::string("--form"), std::string("--id"),
                                    std::to_string(id), std::string("--cluster-id"), std::string("4711"),
                                    std::string("--data-folder"), data_folder(id)})
        args.push_back(word);
    for (int member = 1; member <= kReplicas; ++member) {
        args.push_back("--member");
        args.push_back(std::to_string(member) + "=" + network_.hosts[index(member)] + ":" +
                       std::to_string(peer_ports_[index(member)]) + ",127.0.0.1:" +
                       std::to_string(client_ports_[index(member)]));
    }
    for (const auto& flags : {flags_, network_.flags[index(id)]}) args.insert(args.end(), flags.begin(), flags.end());
    return args;
}

std::vector<std::string> Cluster::servers(int without) const {
    std::vector<std::string> servers;
    for (int id = 1; id <= kReplicas; ++id) {
        if (id != without) servers.push_back("127.0.0.1:" + std::to_string(client_port(id)));
    }
    return servers;
}

int Cluster::wait_for_leader() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
        for (int id = 1; id <= kReplicas; ++id) {
            if (pids_[index(id)] == 0 || paused_[index(id)] || !port_answers(client_port(id))) continue;
            if (info(id, "replication", "role") == "leader") return id;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return 0;
}

std::string Cluster::info(int id, const std::string& section, const std::string& key) const {
    const std::string text = TestClient(client_port(id)).ask("INFO " + section + "\r\n");
    const std::string start = "\r\n" + key + ":";
    const std::size_t at = text.find(start);
    if (at == std::string::npos) return {};
    return text.substr(at + start.size(), text.find("\r\n", at + 2) - at - start.size());
}

std::uint64_t Cluster::number(int id, const std::string& section, const std::string& key) const {
    const std::string text = info(id, section, key);
    EXPECT_FALSE(text.empty()) << key;
    return std::strtoull(text.c_str(), nullptr, 10);
}

void Cluster::signal(int id, int number) {
    pid_t& pid = pids_[index(id)];
    if (pid == 0) return;
    kill(pid, number);
    if (number == SIGSTOP) {
        paused_[index(id)] = true;
        int status = 0;
        EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
        EXPECT_TRUE(WIFSTOPPED(status));
    }
    if (number == SIGCONT) paused_[index(id)] = false;
    if (number != SIGKILL) return;
    waitpid(pid, nullptr, 0);
    pid = 0;
}

void Cluster::restart(int id, const std::vector<std::string>& flags) {
    ASSERT_EQ(pids_[index(id)], 0);
    std::vector<std::string> args = command(id);
    std::erase(args, "--form");
    args.insert(args.end(), flags.begin(), flags.end());
    pids_[index(id)] = start_program(args, folder_ + "/log" + std::to_string(id));
    ASSERT_NE(pids_[index(id)], 0) << "cannot start " << args[0];
}

bool Cluster::serves(int id) const { return log_of(id).find("takes clients on") != std::string::npos; }

bool Cluster::is_taken_in(int id) const {
    return within_a_minute([&] {
        if (!serves(id)) return false;
        const std::string role = info(id, "replication", "role");
        return role == "follower" || role == "leader";
    });
}

int Cluster::stop(int id) {
    kill(pids_[index(id)], SIGTERM);
    const int status = wait_for_exit(pids_[index(id)]);
    pids_[index(id)] = 0;
    return status;
}

int Cluster::wait_for_end(int id) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
        int status = 0;
        if (waitpid(pids_[index(id)], &status, WNOHANG) == pids_[index(id)]) {
            pids_[index(id)] = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
}

std::string Cluster::log_of(int id) const { return read_file(folder_ + "/log" + std::to_string(id)); }

}  // namespace lockstep::counter
