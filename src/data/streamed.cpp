// Access to pixels in memory or in files.
#include "finch/base/error.hpp"
#include "finch/data/dataset.hpp"
#include "finch/pixels/loader.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

namespace finch::data {
namespace {

constexpr std::size_t visited_bytes = std::size_t{4} << 20;  ///< read from files in one step

std::size_t images_at_once(const Dataset& set) {
    return std::max<std::size_t>(1, visited_bytes / static_cast<std::size_t>(set.bytes_per_image()));
}

/// Visits pixels that are in memory. Calls `visit` once for each run of consecutive samples.
void visit_in_memory(const Dataset& set, std::span<const std::int64_t> samples, const VisitPixels& visit) {
    const auto bytes = static_cast<std::size_t>(set.bytes_per_image());
    const std::span<const std::uint8_t> all(set.pixels.data(), set.pixels.size());
    for (std::size_t i = 0; i < samples.size();) {
        std::size_t run = 1;
        while (i + run < samples.size() && samples[i + run] == samples[i + run - 1] + 1) {
            ++run;
        }
        visit(all.subspan(static_cast<std::size_t>(samples[i]) * bytes, run * bytes));
        i += run;
    }
}

}  // namespace

void visit_pixels(const Dataset& set, std::span<const std::int64_t> samples, const VisitPixels& visit) {
    if (!set.store) {
        visit_in_memory(set, samples, visit);
        return;
    }
    const std::size_t most = images_at_once(set);
    std::vector<std::uint8_t> buffer(std::min(most, samples.size()) * static_cast<std::size_t>(set.bytes_per_image()));
    while (!samples.empty()) {
        const auto part = samples.first(std::min(most, samples.size()));
        const auto read = std::span(buffer).first(part.size() * static_cast<std::size_t>(set.bytes_per_image()));
        set.store->read(part, read);
        visit(read);
        samples = samples.subspan(part.size());
    }
}

void visit_pixels(const Dataset& set, const VisitPixels& visit) {
    std::vector<std::int64_t> some(set.samples() == 0 ? 0 : images_at_once(set));
    for (std::int64_t begin = 0; begin < set.samples(); begin += std::ssize(some)) {
        std::iota(some.begin(), some.end(), begin);
        const auto count = std::min(std::ssize(some), set.samples() - begin);
        visit_pixels(set, std::span(some).first(static_cast<std::size_t>(count)), visit);
    }
}

std::int64_t prefetch_bytes(const Options& options, const Dataset& set, std::int64_t batch) {
    constexpr std::int64_t loaders = 2;  // one for training, one for validation
    const auto image = static_cast<std::size_t>(set.bytes_per_image());
    return set.store ? loaders * static_cast<std::int64_t>(pixels::Loader::ring_bytes(image, batch, options.prefetch))
                     : 0;
}

}  // namespace finch::data
