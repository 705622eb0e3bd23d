// Work done by another thread: in order, and not begun any more when the thread ends.
#include "consensus/replica/background_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace lockstep::replica {
namespace {

TEST(BackgroundThread, work_is_done_in_order_on_another_thread) {
    BackgroundThread background;
    std::vector<int> done;
    std::promise<std::thread::id> last;
    for (int number = 0; number < 100; ++number) background.run([&done, number] { done.push_back(number); });
    background.run([&] { last.set_value(std::this_thread::get_id()); });
    EXPECT_NE(last.get_future().get(), std::this_thread::get_id());
    ASSERT_EQ(done.size(), 100u);
    for (int number = 0; number < 100; ++number) EXPECT_EQ(done[static_cast<std::size_t>(number)], number);
}

TEST(BackgroundThread, end_waits_for_what_runs_and_keeps_nothing) {
    const auto held = std::make_shared<int>(1);
    bool finished = false;
    std::promise<void> began;
    std::promise<void> go_on;
    auto background = std::make_unique<BackgroundThread>();
    background->run([&] {
        began.set_value();
        go_on.get_future().wait();
        finished = true;
    });
    background->run([held] {});
    began.get_future().wait();
    EXPECT_EQ(held.use_count(), 2);
    go_on.set_value();
    background.reset();
    EXPECT_TRUE(finished);
    EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace lockstep::replica
