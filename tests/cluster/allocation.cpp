#include "finch/cluster/allocation.hpp"

#include "finch/base/error.hpp"

#include <doctest/doctest.h>

namespace finch::cluster {

using Names = std::vector<std::string>;

TEST_CASE("expand_host_list: expands host lists like `scontrol show hostnames`") {
    CHECK(expand_host_list("n1") == Names{"n1"});
    CHECK(expand_host_list("n[1-3,07],gpu4") == Names{"n1", "n2", "n3", "n07", "gpu4"});
    CHECK(expand_host_list("rack[08-10]-a") == Names{"rack08-a", "rack09-a", "rack10-a"});
    for (const char* list : {"n[1-", "n[a-b]", "n]1[", "n[[1-2]]", "n[1-2]]", "n[]", "n[1,]", "", "n1,,n2"}) {
        CAPTURE(list);
        CHECK_THROWS_AS(static_cast<void>(expand_host_list(list)), ConfigError);
    }
}

TEST_CASE("expand_host_list: accepts very long numbers and several brackets in one name") {
    CHECK(expand_host_list("ip-[010001002003-010001002004]") == Names{"ip-010001002003", "ip-010001002004"});
    CHECK(expand_host_list("n[99999999999999999998-100000000000000000000]") ==
          Names{"n99999999999999999998", "n99999999999999999999", "n100000000000000000000"});
    CHECK(expand_host_list("n[0099-0101,7]") == Names{"n0099", "n0100", "n0101", "n7"});
    CHECK(expand_host_list("rack[1-2]n[08-09]-ib,gpu") ==
          Names{"rack1n08-ib", "rack1n09-ib", "rack2n08-ib", "rack2n09-ib", "gpu"});
    CHECK_THROWS_AS(static_cast<void>(expand_host_list("n[20231201002-20231201001]")), ConfigError);
}

TEST_CASE("expand_counts: expands Slurm's compressed task counts") {
    CHECK(expand_counts("2(x3),1") == std::vector<int>{2, 2, 2, 1});
    CHECK(expand_counts("4") == std::vector<int>{4});
    CHECK_THROWS_AS(static_cast<void>(expand_counts("2(x")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("many")), ConfigError);
}

TEST_CASE("expand_host_list and expand_counts: refuse lists that are too large, before they expand them") {
    const auto nodes = [](const std::string& list) { return expand_host_list(list); };

    CHECK(nodes("n[000001-262144]").size() == most_nodes);
    CHECK_THROWS_AS(nodes("n[1-999999999]"), ConfigError);
    CHECK_THROWS_AS(nodes("n[1-262144],m"), ConfigError);
    CHECK_THROWS_AS(nodes("n[1-262144],m[1-2]"), ConfigError);
    CHECK_THROWS_AS(nodes("n[1-99999999999]"), ConfigError);
    CHECK_THROWS_AS(nodes("n[3-1]"), ConfigError);
    CHECK_THROWS_AS(nodes("n[-3]"), ConfigError);
    CHECK_THROWS_AS(nodes("r[1-9999]n[1-9999]"), ConfigError);
    std::string brackets;
    for (int i = 0; i < 100000; ++i) {
        brackets += "[1]";
    }
    CHECK_THROWS_AS(nodes(brackets), ConfigError);
    CHECK_THROWS_AS(nodes("n[" + std::string(100000, '0') + "1-9]"), ConfigError);
    CHECK_THROWS_AS(nodes(std::string(300, 'n') + "[1-9]"), ConfigError);
    const std::string long_name(240, 'n');
    CHECK(nodes(long_name + "[1-50000]").size() == 50000);
    CHECK_THROWS_WITH_AS(nodes(long_name + "[1-60000]"), doctest::Contains("names take at most 12 MiB"), ConfigError);
    const auto ranks = [](const std::string& list, const std::string& tasks) {
        return ranks_of_allocation(Environment({{"SLURM_JOB_NODELIST", list}, {"SLURM_TASKS_PER_NODE", tasks}}));
    };
    CHECK(ranks("node[00001-10000]", "100(x10000)").size() == 1000000);
    CHECK_THROWS_WITH_AS(ranks(long_name + "[1-4096]", "256(x4096)"), doctest::Contains("nodes of 1048576 ranks"),
                         ConfigError);
    CHECK(expand_counts("1024(x1024)").size() == 1024);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("1024(x1024),1")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("2(x1000000000)")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("1000000000")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("99999999999")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("-3")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("2(x-1)")), ConfigError);
    CHECK_THROWS_AS(static_cast<void>(expand_counts("0")), ConfigError);
}

TEST_CASE("ranks_of_allocation: ranks are assigned to nodes in blocks") {
    const Environment inside({{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2,1"}});

    CHECK(ranks_of_allocation(inside) == Names{"n1", "n1", "n2"});
    CHECK(ranks_of_allocation(Environment({})).empty());
}

TEST_CASE("ranks_of_allocation: uses placeholder names if the node list cannot be parsed") {
    const Environment inside({{"SLURM_JOB_NODELIST", "bgl[000x111]"}, {"SLURM_TASKS_PER_NODE", "2,1"}});

    CHECK(ranks_of_allocation(inside) == Names{"node1", "node1", "node2"});
}

}  // namespace finch::cluster
