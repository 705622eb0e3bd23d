// Stands in for libFuzzer where that is not built in: runs a fuzz target over every file of a corpus folder, and over
// a fixed number of mutations of each (a flipped bit, a cut, a doubled piece), the same ones in every run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);

namespace {

constexpr int kMutationsPerFile = 200;

using Input = std::vector<std::uint8_t>;

Input read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return Input(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

Input mutated(const Input& input, std::mt19937_64& random) {
    Input out = input;
    const std::uint64_t changes = 1 + random() % 4;
    for (std::uint64_t change = 0; change < changes && !out.empty(); ++change) {
        const std::size_t at = random() % out.size();
        switch (random() % 4) {
            case 0: out[at] ^= static_cast<std::uint8_t>(1u << random() % 8); break;
            case 1: out[at] = static_cast<std::uint8_t>(random()); break;
            case 2: out.resize(at); break;
            default: {
                const std::size_t length = std::min<std::size_t>(out.size() - at, 1 + random() % 64);
                const Input piece(out.begin() + static_cast<std::ptrdiff_t>(at),
                                  out.begin() + static_cast<std::ptrdiff_t>(at + length));
                out.insert(out.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
            }
        }
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
        std::fprintf(stderr, "usage: %s FOLDER\nRuns the fuzz target over the files of FOLDER.\n", argv[0]);
        return 2;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(argv[1])) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    if (files.empty()) {
        std::fprintf(stderr, "%s: no files in %s\n", argv[0], argv[1]);
        return 1;
    }
    std::mt19937_64 random(1);
    for (const auto& file : files) {
        std::printf("%s\n", file.filename().c_str());
        std::fflush(stdout);
        const Input input = read_file(file);
        LLVMFuzzerTestOneInput(input.data(), input.size());
        for (int count = 0; count < kMutationsPerFile; ++count) {
            const Input other = mutated(input, random);
            LLVMFuzzerTestOneInput(other.data(), other.size());
        }
    }
    std::printf("%zu files, %d mutations each: done\n", files.size(), kMutationsPerFile);
    return 0;
}
