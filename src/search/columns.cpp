#include "finch/search/columns.hpp"

#include "finch/search/individual.hpp"

namespace finch::search {

const std::vector<std::string>& reserved_columns() {
    static const std::vector<std::string> columns = [] {
        std::vector<std::string> names{"restart", "worker", "sequence", "islands", "problem", "home", "parents"};
        for_each_column<Individual>([&](const Column& column, const auto&) { names.push_back(column.name); });
        return names;
    }();
    return columns;
}

}  // namespace finch::search
