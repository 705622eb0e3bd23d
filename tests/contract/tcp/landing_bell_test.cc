// When the protocol thread hears that bytes have landed.
#include "transport/tcp/landing_bell.h"

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace lockstep::transport::tcp {
namespace {

struct Bell {
    explicit Bell(bool at_once) : bell(context.get_executor(), *waker, at_once) {}

    void land(std::uint64_t bytes) {
        landed = landed + bytes;
        right->set_landed(landed);
        bell.landed(right);
    }

    boost::asio::io_context context;  // it is not run: no timer ends
    std::unique_ptr<link::Waker> waker = link::Waker::make().value();
    std::shared_ptr<LaneRight> right =
        std::make_shared<LaneRight>(link::LaneToken{}, ReplicaId{1}, Incarnation{1}, Position{});
    LandingBell bell;
    Position landed;
};

TEST(LandingBell, lets_landings_gather_where_no_commit_waits_for_them) {
    Bell ours(false);
    ours.land(64);
    EXPECT_FALSE(ours.waker->called());
    ours.land(LandingBell::kLandingBytes);
    EXPECT_TRUE(ours.waker->called());
}

// A durable commit waits for the follower's disk, which waits for this.
TEST(LandingBell, rings_at_once_where_commits_wait_for_it) {
    Bell ours(true);
    ours.land(64);
    EXPECT_TRUE(ours.waker->called());
}

}  // namespace
}  // namespace lockstep::transport::tcp
