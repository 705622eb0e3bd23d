// Where things are in a data folder.
#pragma once

#include <filesystem>
#include <string>

namespace lockstep::replica {

// The folder of that name in a data folder; or what was named itself, where that is the part already.
inline std::string part_of_data_folder(const std::string& folder, const char* part) {
    std::error_code error;
    const std::filesystem::path inside = std::filesystem::path(folder) / part;
    return std::filesystem::is_directory(inside, error) ? inside.string() : folder;
}

}  // namespace lockstep::replica
