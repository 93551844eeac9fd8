#include "finch/report/export.hpp"

#include "finch/report/csv.hpp"

namespace finch::report {

std::string exported(Format format, const store::Recovered& recovered, const search::Space& space,
                     const Competition& competition, const std::string& name) {
    switch (format) {
        case Format::csv:
            return csv(recovered, competition);
        case Format::trace:
            return trace(recovered, space, competition);
        case Format::graphml:
            return lineage(recovered, space, competition);
        case Format::optuna:
            return optuna_journal(recovered, space, competition, name);
    }
    return {};
}

}  // namespace finch::report
