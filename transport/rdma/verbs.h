// libibverbs' objects as owners, and its errors as values.
#pragma once

#include <lockstep/result.h>

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace lockstep::transport::rdma {

template <auto free>
struct Freer {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};

using Context = std::unique_ptr<ibv_context, Freer<ibv_close_device>>;
using Domain = std::unique_ptr<ibv_pd, Freer<ibv_dealloc_pd>>;
using Region = std::unique_ptr<ibv_mr, Freer<ibv_dereg_mr>>;
using Channel = std::unique_ptr<ibv_comp_channel, Freer<ibv_destroy_comp_channel>>;
using Queue = std::unique_ptr<ibv_cq, Freer<ibv_destroy_cq>>;

// "cannot make a queue pair: Cannot allocate memory"
inline Error verbs_error(const std::string& what, int error) {
    return Error("cannot " + what + ": " + std::strerror(error));
}

// Whether a verb failed because the device has gone: then it holds nothing any more, and no byte comes from it.
inline bool device_gone(int error) { return error == EIO || error == ENODEV; }

}  // namespace lockstep::transport::rdma
