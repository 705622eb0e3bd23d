// The operator's side of forming a cluster.
#pragma once

#include <lockstep/options.h>
#include <lockstep/result.h>

#include <string>

namespace lockstep {

// What a data folder says of the forming that its replica took part in.
struct Formation {
    std::string genesis;  // sixteen hexadecimal digits: a secret of the cluster's operators, not for clients
    std::string cluster_id;
    std::string replica;
    bool formed = false;  // it finished, as far as this replica knows: the log may hold acknowledged entries
    std::string durability;  // with which it was formed: to_string of one; empty in a file of an earlier version
};

// Reads it. The error says so if there is none, or it cannot be read. Any thread; blocks for the disk.
Result<Formation> read_formation(const std::string& data_folder);

// Gives up a forming that cannot finish (a replica failed in the middle of it), so that this replica may form again.
// `genesis` must name it exactly: an operator who names it has looked. Refused if it is known to have finished. Do this
// on every replica of the config, none of them running. Any thread; blocks for the disk.
Result<void> abandon_formation(const std::string& data_folder, const std::string& genesis);

}  // namespace lockstep
