#include "finch/search/columns.hpp"

namespace finch::search {

const std::vector<std::string>& reserved_columns() {
    static const std::vector<std::string> columns{
        "id",           "island",      "worker",   "sequence",         "restart",  "generation",         "parents",
        "parent_1",     "parent_2",    "operator", "outcome",          "loss",     "accuracy",           "epochs",
        "best_epoch",   "problem",     "born",     "started",          "finished", "samples_per_second", "ranks",
        "threads",      "batch_size",  "node",     "device",           "home",     "training_seconds",   "progress",
        "last_restart", "last_worker", "deaths",   "progress_at_death"};
    return columns;
}

}  // namespace finch::search
