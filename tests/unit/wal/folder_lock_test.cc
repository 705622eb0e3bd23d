// One process, one place.
#include "log/disk/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep::log {
namespace {

using testing::HasSubstr;

struct Folders : testing::Test {
    Folders() : path((std::filesystem::temp_directory_path() / "lockstep_lock_XXXXXX").string()) {
        EXPECT_NE(::mkdtemp(path.data()), nullptr);
        std::filesystem::create_directory(path + "/a");
    }
    ~Folders() override { std::filesystem::remove_all(path); }
    std::string path;
};

using FolderLockTest = Folders;

TEST_F(FolderLockTest, is_held_by_one_at_a_time) {
    {
        const auto first = FolderLock::take(path + "/a", "m1");
        ASSERT_TRUE(first) << first.error().message();
        const auto second = FolderLock::take(path + "/a", "m1");
        ASSERT_FALSE(second);
        EXPECT_THAT(second.error().message(), HasSubstr("in use by another process"));
        EXPECT_FALSE(FolderLock::adopt(path + "/a", "m1"));
    }
    EXPECT_TRUE(FolderLock::take(path + "/a", "m1"));
}

TEST_F(FolderLockTest, of_a_copy_is_refused_until_adopted) {
    ASSERT_TRUE(FolderLock::take(path + "/a", "m1"));
    std::filesystem::copy(path + "/a", path + "/b");
    const auto copy = FolderLock::take(path + "/b", "m1");
    ASSERT_FALSE(copy);
    EXPECT_THAT(copy.error().message(), HasSubstr("lockstep log adopt " + path + "/b"));
    EXPECT_TRUE(FolderLock::take(path + "/a", "m1")) << "the original is what it was";
    EXPECT_TRUE(FolderLock::adopt(path + "/b", "m1"));
    EXPECT_TRUE(FolderLock::take(path + "/b", "m1"));
}

TEST_F(FolderLockTest, of_a_renamed_folder_is_taken_and_of_one_on_another_machine_is_not) {
    ASSERT_TRUE(FolderLock::take(path + "/a", "m1"));
    std::filesystem::rename(path + "/a", path + "/b");
    EXPECT_TRUE(FolderLock::take(path + "/b", "m1"));
    EXPECT_FALSE(FolderLock::take(path + "/b", "m2"));
}

TEST_F(FolderLockTest, of_a_missing_folder_says_so) {
    const auto lock = FolderLock::take(path + "/none", "m1");
    ASSERT_FALSE(lock);
    EXPECT_THAT(lock.error().message(), HasSubstr("none/lock: No such file"));
}

}  // namespace
}  // namespace lockstep::log
