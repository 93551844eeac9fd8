#include "finch/cluster/allocation.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"

#include <algorithm>
#include <utility>

namespace finch::cluster {
namespace {

constexpr std::size_t longest_name = 255;     // of a host
constexpr std::size_t longest_number = 10;    // in digits
constexpr std::size_t shown_characters = 80;  // of a text that is refused

[[noreturn]] void refuse(const std::string& what, const std::string& text) {
    const bool cut = text.size() > shown_characters;
    throw ConfigError(fmt::format("'{}{}' is no {}", text.substr(0, shown_characters), cut ? "…" : "", what));
}

int number(const std::string& digits, const std::string& whole, const std::string& what) {
    const auto value = parsed<int>(digits);
    if (digits.size() > longest_number || !value || *value < 0) {
        refuse(what, whole);
    }
    return *value;
}

/// Splits at the commas that are not inside brackets.
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char c : text) {
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c == ',' && depth == 0) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

/// "1-3" or "07" → its numbers, with the zeros in front that the first has.
std::vector<std::string> expand_range(const std::string& range, const std::string& whole) {
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const int low = number(first, whole, "host list");
    const int high = dash == std::string::npos ? low : number(range.substr(dash + 1), whole, "host list");
    if (high < low || static_cast<std::size_t>(high - low) >= most_nodes) {
        refuse(fmt::format("host list of at most {} nodes", most_nodes), whole);
    }
    std::vector<std::string> numbers;
    for (int i = low; i <= high; ++i) {
        numbers.push_back(fmt::format("{:0{}}", i, first.size()));
    }
    return numbers;
}

}  // namespace

std::vector<std::string> expand_host_list(const std::string& list) {
    std::vector<std::string> hosts;
    std::size_t name_bytes = 0;
    const auto add = [&](std::string name) {
        name_bytes += name.size();
        if (name_bytes > most_name_bytes) {
            refuse(fmt::format("host list whose names take at most {} MiB", most_name_bytes >> 20), list);
        }
        hosts.push_back(std::move(name));
    };
    for (const std::string& part : split(list)) {
        if (hosts.size() >= most_nodes) {
            refuse(fmt::format("host list of at most {} nodes", most_nodes), list);
        }
        const std::size_t open = part.find('[');
        if (open == std::string::npos) {
            add(part);
            continue;
        }
        const std::size_t close = part.find(']', open);
        if (close == std::string::npos || part.find('[', close) != std::string::npos) {
            refuse("host list with at most one bracket per name", list);
        }
        if (part.size() - (close - open) > longest_name) {
            refuse("host list: a name is longer than any host's", list);
        }
        for (const std::string& range : split(part.substr(open + 1, close - open - 1))) {
            const auto numbers = expand_range(range, list);
            if (numbers.size() > most_nodes - std::min(most_nodes, hosts.size())) {
                refuse(fmt::format("host list of at most {} nodes", most_nodes), list);
            }
            for (const std::string& digits : numbers) {
                add(part.substr(0, open) + digits + part.substr(close + 1));
            }
        }
    }
    return hosts;
}

std::vector<int> expand_counts(const std::string& counts) {
    std::vector<int> expanded;
    std::size_t ranks = 0;
    for (const std::string& part : split(counts)) {
        const std::size_t times = part.find("(x");
        const int count = number(part.substr(0, times), counts, "SLURM_TASKS_PER_NODE");
        int repeat = 1;
        if (times != std::string::npos) {
            if (part.back() != ')') {
                refuse("SLURM_TASKS_PER_NODE", counts);
            }
            repeat = number(part.substr(times + 2, part.size() - times - 3), counts, "SLURM_TASKS_PER_NODE");
        }
        const auto nodes = static_cast<std::size_t>(repeat);
        const auto on_each = static_cast<std::size_t>(count);
        if (nodes == 0 || on_each == 0 || on_each > most_ranks || nodes > (most_ranks - ranks) / on_each) {
            refuse(fmt::format("SLURM_TASKS_PER_NODE: expected 1 to {} tasks in all", most_ranks), counts);
        }
        ranks += nodes * on_each;
        expanded.insert(expanded.end(), nodes, count);
    }
    return expanded;
}

std::vector<std::string> ranks_of_allocation(const Environment& environment) {
    const auto list = environment.text("SLURM_JOB_NODELIST");
    const auto tasks = environment.text("SLURM_TASKS_PER_NODE");
    std::vector<std::string> node_of_rank;
    if (!list || !tasks) {
        return node_of_rank;
    }
    const std::vector<std::string> hosts = expand_host_list(*list);
    const std::vector<int> counts = expand_counts(*tasks);
    std::size_t ranks = 0;
    std::size_t name_bytes = 0;
    for (std::size_t i = 0; i < hosts.size() && i < counts.size(); ++i) {
        ranks += static_cast<std::size_t>(counts[i]);
        name_bytes += static_cast<std::size_t>(counts[i]) * hosts[i].size();
    }
    if (name_bytes > most_name_bytes) {
        throw ConfigError(
            fmt::format("SLURM_JOB_NODELIST: the names of the nodes of {} ranks take {} bytes, more than {}", ranks,
                        name_bytes, most_name_bytes));
    }
    node_of_rank.reserve(ranks);
    for (std::size_t i = 0; i < hosts.size() && i < counts.size(); ++i) {
        node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(counts[i]), hosts[i]);
    }
    return node_of_rank;
}

}  // namespace finch::cluster
