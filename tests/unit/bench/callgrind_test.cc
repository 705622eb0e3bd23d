#include "tools/bench/callgrind.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::bench {
namespace {

// The example of the format in valgrind's manual, with compressed names and positions.
constexpr const char* kProfile =
    "# callgrind format\n"
    "events: Ir\n"
    "\n"
    "fl=(1) file1.c\n"
    "fn=(1) main\n"
    "16 400\n"
    "cfn=(2) func1\n"
    "calls=1 50\n"
    "+0 400\n"
    "cfi=(2) file2.c\n"
    "cfn=(3) func2\n"
    "calls=3 20\n"
    "+0 400\n"
    "\n"
    "fn=(2)\n"
    "51 100\n"
    "cfi=(2)\n"
    "cfn=(3)\n"
    "calls=2 20\n"
    "* 300\n"
    "\n"
    "fl=(2)\n"
    "fn=(3)\n"
    "20 500\n"
    "-2 200\n"
    "totals: 1200\n";

class Files : public testing::Test {
 protected:
    Files() {
        std::string path = (std::filesystem::temp_directory_path() / "lockstep-callgrind-XXXXXX").string();
        folder_ = mkdtemp(path.data());
    }
    ~Files() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ + "/" + name) << text;
        return folder_ + "/" + name;
    }
    std::string folder_;
};

using Callgrind = Files;

TEST_F(Callgrind, cost_of_calls_is_not_a_functions_own) {
    const auto profile = read_profile(write("out", kProfile));
    ASSERT_TRUE(profile.ok());
    EXPECT_EQ(profile.value().total, 1200u);
    EXPECT_EQ(profile.value().self.at("main"), 400u);
    EXPECT_EQ(profile.value().self.at("func1"), 100u);
    EXPECT_EQ(profile.value().self.at("func2"), 700u);
}

TEST_F(Callgrind, thread_is_found_by_a_function_that_it_ran) {
    write("out-01", "fn=(1) main\n1 900\n");
    write("out-02", "fn=(1) turn\n1 100\nfn=(2) wanted\n2 50\n");
    write("out-03", "fn=(1) wanted\n1 10\n");
    const auto profile = profile_of_thread(folder_ + "/out", "wanted");
    ASSERT_TRUE(profile.ok());
    EXPECT_EQ(profile.value().total, 150u);
    EXPECT_FALSE(profile_of_thread(folder_ + "/out", "absent").ok());
}

TEST_F(Callgrind, missing_file_is_an_error_that_names_it) {
    const auto profile = read_profile(folder_ + "/none");
    ASSERT_FALSE(profile.ok());
    EXPECT_NE(profile.error().message().find("/none"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::bench
