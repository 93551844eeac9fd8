#pragma once

#include "finch/config/schema.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Short functions that build the domains of keys.
namespace finch::config {

inline constexpr std::int64_t million = 1000000;

inline Domain either(std::vector<Domain> domains) {
    return {Either{std::move(domains)}};
}
inline Domain whole(std::int64_t low, std::int64_t high) {
    return {Whole{low, high}};
}
inline Domain real(double low, double high) {
    return {Real{low, high, false}};
}
inline Domain above(double low, double high) {
    return {Real{low, high, true}};
}
inline Domain word_of(std::vector<std::string> some) {
    return {Word{std::move(some)}};
}
/// Returns the words of an enum without the first, which is "none".
template <EnumWithWords Enum>
Domain word_but_none() {
    std::vector<std::string> some = all_words<Enum>();
    some.erase(some.begin());
    return word_of(std::move(some));
}
inline Domain or_null(Domain domain) {
    return either({{Null{}}, std::move(domain)});
}
inline Domain one_or_list(const Domain& domain) {
    return either({domain, {List{{domain}}}});
}
inline Domain section(std::vector<Key> keys) {
    return {Section{.keys = std::move(keys)}};
}
inline bool is_path(const std::string& text) {
    return !text.empty() && text.size() <= 4096;
}

inline Domain path() {
    return {Text{"a path", is_path, {"some/where"}, {"''"}}};
}

/// The keys and domains of a search; defined in objective_keys.cpp, propagator_keys.cpp and budget_keys.cpp.
[[nodiscard]] Key objective();
[[nodiscard]] Domain propagator();
[[nodiscard]] Domain pruning();
[[nodiscard]] Domain budget_section();

/// The domains of a recipe; defined in data_keys.cpp and recipe_keys.cpp.
[[nodiscard]] Domain data_section();
[[nodiscard]] Domain model_layers();
[[nodiscard]] Domain training_section();
/// Returns the name of each optimizer, with the learning rate that `auto` means for it.
[[nodiscard]] std::vector<std::pair<std::string, double>> usual_rates();

}  // namespace finch::config
