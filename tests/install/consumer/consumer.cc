// A user of an installed Lockstep: reads the config that it is given, and says what it found.
#include <lockstep/options.h>

#include <cstdio>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const lockstep::Result<lockstep::Options> options = lockstep::Options::from_file(argv[1]);
    if (!options) {
        std::fprintf(stderr, "%s\n", options.error().message().c_str());
        return 1;
    }
    std::printf("replica %d of %zu\n", options.value().id.value, options.value().members.size());
    return 0;
}
