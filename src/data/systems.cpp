#include "finch/base/error.hpp"
#include "finch/base/format.hpp"

#include "readers.hpp"

#include <memory>
#include <utility>

namespace finch::data {

std::vector<std::string> paths_of(const Options& options) {
    if (options.systems.empty()) {
        return {options.path};
    }
    std::vector<std::string> paths;
    for (const System& system : options.systems) {
        paths.push_back(system.path);
    }
    return paths;
}

std::string places_text(const Options& options) {
    return fmt::format("{}", fmt::join(paths_of(options), ", "));
}

bool is_weighted(const Options& options) {
    return !options.system_blocks.empty() || (!options.systems.empty() && options.systems.front().weight.has_value());
}

std::string shape_text(const Dataset& set) {
    return fmt::format("{} x {} x {} {}{}", set.height, set.width, set.channels,
                       set.float_pixels ? "floating-point numbers" : "bytes",
                       set.targets.empty() ? "" : fmt::format(" with targets of {} numbers", set.target_size));
}

void append(Dataset& to, const Dataset& from) {
    if (to.image_size() != from.image_size() || (to.store == nullptr) != (from.store == nullptr)) {
        throw Error("two data sets of unlike images cannot become one");
    }
    if (to.store) {
        std::vector<pixels::Piece> pieces = to.store->pieces();
        pieces.insert(pieces.end(), from.store->pieces().begin(), from.store->pieces().end());
        to.store = std::make_shared<pixels::Store>(to.image_size(), std::move(pieces));
    }
    const std::int64_t before = to.samples();
    const auto add = [](auto& list, const auto& more) {
        list.own().insert(list.own().end(), more.begin(), more.end());
    };
    add(to.pixels, from.pixels);
    add(to.labels, from.labels);
    add(to.targets, from.targets);
    for (const std::int64_t sample : from.validation) {
        to.validation.own().push_back(before + sample);
    }
}

std::optional<Dataset> join_systems(const Options& options, const ReadSystem& read) {
    std::optional<Dataset> all;
    std::vector<std::int64_t> ends;
    std::string first;
    for (const std::string& path : paths_of(options)) {
        std::optional<Dataset> set = read(path);
        if (set && !all) {
            first = path;
            all = std::move(set);
        } else if (set) {
            if (shape_text(*set) != shape_text(*all)) {
                refuse(path, fmt::format("images are {}, those of {} {}; expected the same in all systems",
                                         shape_text(*set), first, shape_text(*all)));
            }
            join_class_names(*all, first, *set, path);
            append(*all, *set);
        }
        ends.push_back(all ? all->samples() : 0);
    }
    if (all && !options.systems.empty()) {
        all->system_ends = std::move(ends);
    }
    return all;
}

}  // namespace finch::data
