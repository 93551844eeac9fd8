#include "finch/cluster/allocation.hpp"

#include "finch/base/error.hpp"
#include "finch/base/format.hpp"
#include "finch/base/parsed.hpp"

#include <algorithm>
#include <utility>

namespace finch::cluster {
namespace {

constexpr std::size_t longest_name = 255;     // of a host name, and of its number
constexpr std::size_t longest_number = 10;    // in digits
constexpr std::size_t shown_characters = 80;  // of a refused text

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

/// Splits a text at commas outside brackets.
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

/// True if `text` is a host number: decimal text, because it may have more digits than an integer can hold.
bool is_number(const std::string& text) {
    return !text.empty() && text.size() <= longest_name && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string without_zeros(const std::string& digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

bool is_less(const std::string& a, const std::string& b) {
    const std::string low = without_zeros(a);
    const std::string high = without_zeros(b);
    return low.size() != high.size() ? low.size() < high.size() : low < high;
}

/// Increments a decimal text: "0099" → "0100", "99" → "100".
std::string next_number(std::string digits) {
    std::size_t place = digits.size();
    for (; place > 0 && digits[place - 1] == '9'; --place) {
        digits[place - 1] = '0';
    }
    if (place == 0) {
        return "1" + digits;
    }
    ++digits[place - 1];
    return digits;
}

/// Expands one host list.
class HostList {
public:
    explicit HostList(const std::string& list) : list_(list) {}

    std::vector<std::string> expand() {
        for (const std::string& part : split(list_)) {
            add("", part);
        }
        return std::move(hosts_);
    }

private:
    /// Expands `part`, prepends `name`, and adds the names. The numbers of the last bracket vary fastest.
    void add(const std::string& name, const std::string& part) {
        const std::size_t open = part.find_first_of("[]");
        const std::size_t close = part.find_first_of("[]", open + 1);
        const std::string begin = name + part.substr(0, open);
        if (begin.size() > longest_name) {
            refuse("host list: a name is longer than any host's", list_);
        }
        if (open == std::string::npos) {
            add_host(begin);
            return;
        }
        if (part[open] != '[' || close == std::string::npos || part[close] != ']') {
            refuse("host list: its brackets do not match", list_);
        }
        const std::string rest = part.substr(close + 1);
        for (const std::string& range : split(part.substr(open + 1, close - open - 1))) {
            const std::size_t dash = range.find('-');
            const std::string first = range.substr(0, dash);
            const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
            if (!is_number(first) || !is_number(last) || is_less(last, first)) {
                refuse("host list", list_);
            }
            for (std::string number = first;; number = next_number(number)) {
                add(begin + number, rest);
                if (!is_less(number, last)) {
                    break;
                }
            }
        }
    }

    void add_host(const std::string& name) {
        if (name.empty()) {
            refuse("host list: a name is empty", list_);
        }
        if (hosts_.size() >= most_nodes) {
            refuse(fmt::format("host list of at most {} nodes", most_nodes), list_);
        }
        name_bytes_ += name.size();
        if (name_bytes_ > most_name_bytes) {
            refuse(fmt::format("host list whose names take at most {} MiB", most_name_bytes >> 20), list_);
        }
        hosts_.push_back(name);
    }

    const std::string& list_;
    std::vector<std::string> hosts_;
    std::size_t name_bytes_ = 0;
};

/// Returns the expanded names, or node1, node2 … for an unreadable list. An unreadable list is no error, because names
/// are only printed.
std::vector<std::string> host_names(const std::string& list, std::size_t nodes) {
    try {
        return expand_host_list(list);
    } catch (const ConfigError&) {
        std::vector<std::string> names;
        for (std::size_t node = 1; node <= nodes; ++node) {
            names.push_back(fmt::format("node{}", node));
        }
        return names;
    }
}

}  // namespace

std::vector<std::string> expand_host_list(const std::string& list) {
    return HostList(list).expand();
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
    const std::vector<int> counts = expand_counts(*tasks);
    const std::vector<std::string> hosts = host_names(*list, counts.size());
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
