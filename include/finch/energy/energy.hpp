#pragma once

#include "finch/base/fields.hpp"

#include <array>
#include <limits>
#include <string>
#include <string_view>

namespace finch::energy {

/// Where joules come from. none: nothing was spent. mixed: parts of them have different sources.
enum class Source { unknown, none, estimated, measured_cpu, measured_gpu, mixed };
constexpr std::array<std::string_view, 6> words_of(Source) {
    return {"unknown", "none", "estimated", "measured_cpu", "measured_gpu", "mixed"};
}

/// An amount of energy.
struct Energy {
    double joules = std::numeric_limits<double>::quiet_NaN();
    Source source = Source::unknown;

    [[nodiscard]] bool is_known() const noexcept { return source != Source::unknown; }
    bool operator==(const Energy&) const = default;
};

constexpr auto fields_of(const Energy*) {
    return std::tuple{
        Field{"joules", &Energy::joules,
              "that its training took on all its ranks, over all starts of the run; NaN: not known"},
        Field{"energy_source", &Energy::source, "where the joules come from"},
    };
}
static_assert(lists_every_member<Energy>);

inline constexpr Energy nothing{0, Source::none};

/// Both together. What is added to something unknown is unknown.
[[nodiscard]] Energy operator+(const Energy& a, const Energy& b) noexcept;

/// "12.3 J", "456 kJ", "7.89 kWh": an amount of energy as a person reads it.
[[nodiscard]] std::string joules_text(double joules);

}  // namespace finch::energy
