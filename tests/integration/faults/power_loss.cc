#include "tests/integration/faults/power_loss.h"

#include "tests/integration/faults/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

namespace lockstep::faults {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSectorBytes = 512;

struct Noted {
    Record record;
    std::uint64_t place = 0;
    std::string behind;

    std::string path() const { return behind.substr(0, behind.find('\0')); }
    std::string new_path() const { return behind.substr(behind.find('\0') + 1); }
};

std::vector<Noted> read_journal(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<Noted> noted;
    for (std::size_t at = 0; at + sizeof(Record) <= text.size();) {
        Noted one;
        one.place = at;
        std::memcpy(&one.record, text.data() + at, sizeof one.record);
        // The last one may have been cut short by the kill: then it says of a call that was not made.
        if (one.record.bytes > text.size() - at - sizeof one.record) break;
        one.behind = text.substr(at + sizeof one.record, one.record.bytes);
        at += sizeof one.record + one.behind.size();
        noted.push_back(std::move(one));
    }
    return noted;
}

class PowerLoss {
 public:
    PowerLoss(const std::string& data, const std::string& side, std::uint64_t seed)
        : data_(data), side_(side), all_(seed % 2 == 0), random_(seed), noted_(read_journal(journal())) {}

    Lost all() {
        lose_bytes();
        lose_names();
        std::vector<fs::path> kept;
        for (const auto& entry : fs::directory_iterator(side_))
            if (entry.path().filename().string().starts_with("kept-")) kept.push_back(entry.path());
        for (const fs::path& path : kept) fs::remove(path);
        fs::remove(journal());
        return lost_;
    }

 private:
    using Kind = Record::Kind;
    struct Piece {
        std::uint64_t place = 0;
        std::uint64_t offset = 0;
        std::string before;
        bool lost = false;  // by a sync that failed
    };

    std::string journal() const { return side_ + "/" + kJournalName; }
    std::uint64_t draw(std::uint64_t bound) { return random_() % bound; }

    // Under any name, also those that are kept.
    std::map<std::uint64_t, std::string> files() const {
        std::map<std::uint64_t, std::string> found;
        for (const std::string& folder : {data_, side_}) {
            for (const auto& entry : fs::recursive_directory_iterator(folder)) {
                struct stat about{};
                if (stat(entry.path().c_str(), &about) == 0 && S_ISREG(about.st_mode))
                    found[about.st_ino] = entry.path();
            }
        }
        return found;
    }

    void lose_bytes() {
        // What is not durable of each sector, in order.
        std::map<std::uint64_t, std::map<std::uint64_t, std::vector<Piece>>> pieces;
        for (const Noted& one : noted_) {
            if (one.record.kind == Kind::sync)
                for (auto& [sector, written] : pieces[one.record.file]) forget_durable(written, one.record.offset);
            if (one.record.kind == Kind::sync_failed)
                for (auto& [sector, written] : pieces[one.record.file])
                    for (Piece& piece : written) piece.lost = true;
            if (one.record.kind != Kind::write) continue;
            const std::uint64_t end = one.record.offset + one.record.bytes;
            for (std::uint64_t at = one.record.offset; at < end;) {
                const std::uint64_t upto = std::min(end, (at / kSectorBytes + 1) * kSectorBytes);
                pieces[one.record.file][at / kSectorBytes].push_back(
                    {one.place, at, one.behind.substr(at - one.record.offset, upto - at), false});
                at = upto;
            }
        }
        const auto there = files();
        for (const auto& [file, sectors] : pieces)
            if (const auto found = there.find(file); found != there.end()) put_back(found->second, sectors);
    }

    // A sector is written as a whole: with what was synced, everything that was written to it before is.
    static void forget_durable(std::vector<Piece>& written, std::uint64_t below) {
        const auto newest = std::find_if(written.rbegin(), written.rend(), [below](const Piece& piece) {
            return piece.place < below && !piece.lost;
        });
        written.erase(written.begin(), newest.base());
    }

    void put_back(const std::string& path, const std::map<std::uint64_t, std::vector<Piece>>& sectors) {
        const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (file < 0) throw std::runtime_error("cannot open " + path);
        for (const auto& [sector, written] : sectors) {
            if (written.empty()) continue;
            const std::uint64_t undone = all_ ? written.size() : draw(written.size() + 1);
            lost_.sectors += undone == 0 ? 0 : 1;
            for (std::uint64_t i = 0; i < undone; ++i) {
                const Piece& piece = written[written.size() - 1 - i];
                if (pwrite(file, piece.before.data(), piece.before.size(), static_cast<off_t>(piece.offset)) !=
                    static_cast<ssize_t>(piece.before.size()))
                    throw std::runtime_error("cannot write " + path);
            }
        }
        close(file);
    }

    void lose_names() {
        std::map<std::string, std::vector<const Noted*>> changes;  // by folder
        for (const Noted& one : noted_) {
            if (one.record.kind == Kind::synced_folder)
                std::erase_if(changes[one.behind],
                              [&](const Noted* change) { return change->place < one.record.offset; });
            if (one.record.kind == Kind::created || one.record.kind == Kind::renamed ||
                one.record.kind == Kind::removed)
                changes[fs::path(one.path()).parent_path()].push_back(&one);
        }
        for (const auto& [folder, in_order] : changes) {
            const std::uint64_t undone = all_ ? in_order.size() : draw(in_order.size() + 1);
            for (std::uint64_t i = 0; i < undone; ++i) undo(*in_order[in_order.size() - 1 - i]);
        }
    }

    void undo(const Noted& change) {
        const std::string kept = side_ + "/kept-" + std::to_string(change.place);
        ++lost_.names;
        switch (change.record.kind) {
            case Kind::created:
                fs::remove(change.path());
                break;
            case Kind::renamed:
                // Not carried out, where the kill came before it.
                if (fs::exists(change.path())) break;
                fs::rename(change.new_path(), change.path());
                if (fs::exists(kept)) fs::rename(kept, change.new_path());
                break;
            case Kind::removed:
                if (!fs::exists(change.path())) fs::rename(kept, change.path());
                break;
            default:
                break;
        }
    }

    const std::string data_;
    const std::string side_;
    const bool all_;
    std::mt19937_64 random_;
    const std::vector<Noted> noted_;
    Lost lost_;
};

}  // namespace

Lost lose_power(const std::string& data, const std::string& side, std::uint64_t seed) {
    return PowerLoss(data, side, seed).all();
}

}  // namespace lockstep::faults
