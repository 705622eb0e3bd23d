#include "consensus/replica/formation_file.h"

#include <lockstep/formation.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace lockstep {

namespace {

constexpr const char* kFileName = "formation";
constexpr const char* kFirstLine = "lockstep formation 1";
constexpr std::uintmax_t kMaxFileBytes = 64 * 1024;

std::string path_in(const std::string& folder) { return folder + "/" + kFileName; }

std::string hex(std::uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, value);
    return text;
}

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

// Writes and fsyncs. Closes in every case.
Result<void> write_all(int file, const std::string& text, const std::string& path) {
    std::size_t done = 0;
    while (done < text.size()) {
        const ssize_t written = ::write(file, text.data() + done, text.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            Error error = system_error("cannot write " + path);
            ::close(file);
            return error;
        }
        done += static_cast<std::size_t>(written);
    }
    if (::fsync(file) != 0) {
        Error error = system_error("cannot fsync " + path);
        ::close(file);
        return error;
    }
    if (::close(file) != 0) return system_error("cannot close " + path);
    return {};
}

Result<void> sync_folder(const std::string& folder) {
    const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle < 0) return system_error("cannot open folder " + folder);
    const bool synced = ::fsync(handle) == 0;
    Error error = system_error("cannot fsync folder " + folder);
    ::close(handle);
    if (!synced) return error;
    return {};
}

// "key: value" lines; an unknown key is an error, since a newer version may mean something by it.
struct Parsed {
    Formation formation;
    core::Config voters;
    Incarnation life;
};

std::optional<std::uint64_t> number(std::string_view text, int base, std::uint64_t most) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || value == 0 || value > most) return {};
    return value;
}

// "2 00000000deadbeef": who, and which life of it.
std::optional<core::Voter> voter(std::string_view text) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {};
    const auto id = number(text.substr(0, blank), 10, 255);
    const auto life = number(text.substr(blank + 1), 16, ~std::uint64_t{0});
    if (!id || !life) return {};
    return core::Voter{ReplicaId{static_cast<std::uint8_t>(*id)}, Incarnation{*life}};
}

Result<Parsed> parse(std::istream& in, const std::string& path) {
    std::string line;
    std::getline(in, line);
    if (line != kFirstLine)
        return Error(path + " is not a formation file of this version: its first line is not '" + kFirstLine + "'");
    Parsed parsed;
    Formation& formation = parsed.formation;
    std::optional<std::uint64_t> count;
    while (std::getline(in, line)) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos) return Error(path + ": '" + line + "' is no 'key: value' line");
        const std::string key = line.substr(0, colon);
        const std::string value = line.substr(colon + 2);
        if (key == "genesis") formation.genesis = value;
        else if (key == "cluster") formation.cluster_id = value;
        else if (key == "replica") formation.replica = value;
        else if (key == "formed") formation.formed = value == "yes";
        else if (key == "durability") formation.durability = value;
        else if (key == "life") parsed.life.value = number(value, 16, ~std::uint64_t{0}).value_or(0);
        else if (key == "voters") count = value == "0" ? 0 : number(value, 10, kMaxReplicas);
        else if (key != "voter") return Error(path + ": unknown key '" + key + "'");
        if (key != "voter") continue;
        const auto one = voter(value);
        if (!one || !parsed.voters.voters.add(*one))
            return Error(path + ": '" + value + "' is no voter, or one too many: the file is damaged");
    }
    if (!count || *count != parsed.voters.voters.size())
        return Error(path + " names " + std::to_string(parsed.voters.voters.size()) +
                     " voters where it says that there are " + (count ? std::to_string(*count) : "none") +
                     ": the file is damaged");
    if (formation.genesis.size() != 16 || !number(formation.genesis, 16, ~std::uint64_t{0}))
        return Error(path + ": the genesis is missing or not sixteen digits");
    return parsed;
}

Result<Parsed> read_file(const std::string& data_folder) {
    const std::string path = path_in(data_folder);
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    if (error) return Error("cannot read " + path + ": " + error.message());
    if (size > kMaxFileBytes) return Error(path + " is too large to be a formation file");
    std::ifstream in(path);
    if (!in) return system_error("cannot read " + path);
    return parse(in, path);
}

}  // namespace

Result<Formation> read_formation(const std::string& data_folder) {
    auto parsed = read_file(data_folder);
    if (!parsed) return std::move(parsed).error();
    return std::move(parsed).value().formation;
}

Result<void> abandon_formation(const std::string& data_folder, const std::string& genesis) {
    auto formation = read_formation(data_folder);
    if (!formation) return std::move(formation).error().within("nothing to abandon");
    if (formation.value().genesis != genesis)
        return Error("the formation in " + data_folder + " has genesis " + formation.value().genesis + ", not '" +
                     genesis + "': name the one that is there to abandon it");
    if (formation.value().formed)
        return Error("the formation in " + data_folder +
                     " has finished: the cluster may hold acknowledged entries, so it cannot be abandoned");
    // A log that was begun goes first: without the formation it would be nobody's.
    std::error_code error;
    std::filesystem::remove_all(data_folder + "/log", error);
    if (error) return Error("cannot remove " + data_folder + "/log: " + error.message());
    if (::unlink(path_in(data_folder).c_str()) != 0) return system_error("cannot remove " + path_in(data_folder));
    return sync_folder(data_folder);
}

namespace replica {

Result<FormationFile> FormationFile::open(const Options& options, Incarnation fresh) {
    std::error_code error;
    std::filesystem::create_directories(options.data_folder, error);
    if (error) return Error("cannot make data folder " + options.data_folder + ": " + error.message());
    if (::access(options.data_folder.c_str(), W_OK | X_OK) != 0)
        return system_error("cannot write in data folder " + options.data_folder);
    const std::string path = path_in(options.data_folder);
    const bool there = std::filesystem::exists(path, error);
    if (error) return Error("cannot look for " + path + ": " + error.message());
    if (!there) {
        if (!options.form && !options.join)
            return Error("data folder " + options.data_folder +
                         " holds no cluster: start every replica of the config once with form set (--form) to make a "
                         "new one, or this one with join (--join) if there is one and it has lost its disk");
        return FormationFile(options, fresh);
    }
    auto parsed = read_file(options.data_folder);
    if (!parsed) return std::move(parsed).error();
    const Formation& formation = parsed.value().formation;
    const std::string which = "replica " + formation.replica + " of cluster " + formation.cluster_id;
    const bool has_log = std::filesystem::exists(options.data_folder + "/log/hard_state", error);
    if (!formation.formed && !has_log)
        return Error("data folder " + options.data_folder + ": " + which + " began to form a cluster (genesis " +
                     formation.genesis + ") and ended before it knew that all had; if none of the replicas " +
                     "got further, stop them all and abandon that genesis on each, then form again; or, if there is a "
                     "cluster, give this replica an empty data folder and start it with join (--join)");
    const std::string was = !formation.durability.empty() ? formation.durability : has_log ? "durable" : "memory";
    if (was != to_string(options.durability))
        return Error("data folder " + options.data_folder + ": " + which + " was formed with durability '" + was +
                     "', and the config says '" + to_string(options.durability) + "': say '" + was + "'");
    // A log of persist_async has no promises beside it, and is none to come back with (S1, S12).
    const bool durable = options.durability == Durability::durable;
    FormationFile file(options, durable ? parsed.value().life : fresh);
    file.kept_ = KeptFormation{*number(formation.genesis, 16, ~std::uint64_t{0}), parsed.value().voters,
                               formation.formed, parsed.value().life};
    return file;
}

Result<void> FormationFile::keep(std::uint64_t genesis, const core::Config& voters, bool formed) {
    std::ostringstream text;
    text << kFirstLine << "\ngenesis: " << hex(genesis) << "\ncluster: " << cluster_id_
         << "\nreplica: " << int{id_.value} << "\ndurability: " << to_string(durability_)
         << "\nformed: " << (formed ? "yes" : "no") << "\nlife: " << to_string(life_)
         << "\nvoters: " << voters.voters.size() << "\n";
    for (const core::Voter& voter : voters.voters.all())
        text << "voter: " << int{voter.id.value} << " " << to_string(voter.incarnation) << "\n";

    const std::string path = path_in(folder_);
    const std::string aside = path + ".new";
    const int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return system_error("cannot create " + aside);
    if (auto written = write_all(file, text.str(), aside); !written) return written;
    if (::rename(aside.c_str(), path.c_str()) != 0) return system_error("cannot rename " + aside + " to " + path);
    return sync_folder(folder_);
}

}  // namespace replica
}  // namespace lockstep
