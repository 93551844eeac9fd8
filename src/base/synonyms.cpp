#include "finch/base/words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace finch {
namespace {

constexpr std::string_view log_range = "{real: [low, high], scale: log}";
constexpr std::string_view stepped_range = "{real: [low, high], step: ...}";
constexpr std::string_view any_gene = "{real: [low, high]}, {int: [low, high]} or {choice: [a, b]}";

/// Finch's word, the words of other tools in their spelling, and sometimes how messages show it. If a word stands in
/// several rows, the first row whose own word is accepted counts.
constexpr auto table = std::to_array<Synonyms>({
    // genes
    {"real", "float suggest_float uniform number double"},
    {"real", "loguniform suggest_loguniform", log_range},
    {"real", "quniform", stepped_range},
    {"int", "integer suggest_int randint"},
    {"choice", "categorical suggest_categorical choices options values"},
    {"value", "constant fixed"},
    {"real", "type low high min max range bounds", any_gene},
    {"scale", "log distribution", "scale: log"},
    {"log", "logarithmic"},
    {"step", "q"},
    {"when", "condition parent"},
    // layers
    {"conv", "Conv2d convolution Convolution2D"},
    {"conv", "DepthwiseConv2D", "conv: {groups: depthwise}"},
    {"linear", "Dense fully_connected fc"},
    {"max_pool", "MaxPool2d MaxPooling2D pool"},
    {"average_pool", "AvgPool2d avg_pool AveragePooling2D"},
    {"global_average_pool", "AdaptiveAvgPool2d GlobalAveragePooling2D"},
    {"batch_norm", "BatchNorm2d BatchNormalization"},
    {"layer_norm", "LayerNormalization"},
    {"block", "Sequential"},
    {"block", "residual_block", "block: {residual: true}"},
    {"channels", "out_channels filters units features"},
    {"units", "features out_features hidden_size neurons channels"},
    {"classes", "num_classes n_classes"},
    {"kernel", "kernel_size pool_size window size"},
    {"stride", "strides"},
    {"dilation", "dilation_rate"},
    {"rate", "p dropout_rate"},
    {"epsilon", "eps"},
    {"activation", "act nonlinearity"},
    {"activation", "relu tanh sigmoid gelu silu leaky_relu", "{activation: NAME}"},
    {"silu", "swish"},
    {"leaky_relu", "lrelu"},
    {"sigmoid", "logistic"},
    {"none", "identity"},
    {"repeat", "num_layers n_layers"},
    {"residual", "skip_connection"},
    {"concatenate", "concat"},
    // training
    {"learning_rate", "lr eta"},
    {"epochs", "n_epochs num_epochs max_epochs"},
    {"batch_size", "batch bs"},
    {"micro_batches", "gradient_accumulation_steps accumulate_grad_batches"},
    {"schedule", "lr_scheduler scheduler"},
    {"warm_up_epochs", "warmup"},
    {"clip_norm", "clip_grad_norm gradient_clip_val max_grad_norm"},
    {"loss", "criterion loss_fn loss_function"},
    {"cross_entropy", "CrossEntropyLoss categorical_crossentropy sparse_categorical_crossentropy"},
    {"mean_squared_error", "MSELoss mse"},
    {"mean_absolute_error", "L1Loss mae"},
    {"average", "ema ema_decay"},
    {"early_stopping", "early_stop"},
    {"precision", "amp dtype mixed_precision"},
    {"float16", "half fp16"},
    {"bfloat16", "bf16"},
    {"float32", "fp32"},
    {"initialization", "init kernel_initializer"},
    {"he", "kaiming"},
    {"xavier", "glorot"},
    {"weight_decay", "wd"},
    {"beta1", "betas", "beta1 and beta2"},
    {"cosine", "CosineAnnealingLR cosine_annealing"},
    {"one_cycle", "OneCycleLR"},
    {"step", "StepLR"},
    {"exponential", "ExponentialLR"},
    {"every", "step_size"},
    {"factor", "gamma"},
    {"minimum", "eta_min"},
    {"rise", "pct_start"},
    {"start", "div_factor"},
    // data
    {"data", "dataset"},
    {"kind", "format type dataset"},
    {"path", "root folder file data_dir"},
    {"idx", "mnist"},
    {"cifar", "cifar10 cifar100"},
    {"hdf5", "h5"},
    {"size", "image_size"},
    {"augmentation", "augment transforms"},
    {"mirror", "flip horizontal_flip RandomHorizontalFlip"},
    {"shift", "translate"},
    {"rotation", "RandomRotation rotate"},
    {"cutout", "RandomErasing"},
    {"deviation", "std"},
    {"validation_samples", "val_split validation_split"},
    {"training_samples", "n_train train_samples"},
    {"streamed", "streaming"},
    {"threads", "num_workers"},
    // search
    {"space", "search_space hyperparameters parameters"},
    {"evaluations", "n_trials num_trials trials max_evals max_evaluations"},
    {"hours", "timeout max_hours"},
    {"timeout_seconds", "timeout"},
    {"propagator", "sampler algorithm"},
    {"auto", "TPESampler tpe"},
    {"cmaes", "CmaEsSampler CMAPropagator"},
    {"swarm", "pso BasicPSO particle_swarm"},
    {"basic", "clamped", "basic with clamping: 0.6"},
    {"canonical", "constriction", "canonical with clamping: 10"},
    {"screened", "GPSampler bayesian gaussian_process"},
    {"genetic", "genetic_algorithm ga nsga2"},
    {"evolution", "differential_evolution de"},
    {"random", "RandomSampler random_search random_init_prob"},
    {"nelder_mead", "ParallelNelderMead simplex"},
    {"population", "pop_size population_size"},
    {"crossover", "crossover_prob crossover_rate"},
    {"mutation", "mutation_prob mutation_rate"},
    {"pruning", "pruner"},
    {"inherit", "pbt population_based_training PopulationBasedTraining"},
    {"halving", "HyperbandPruner hyperband asha SuccessiveHalvingPruner"},
    {"median", "MedianPruner"},
    {"first_epoch", "min_resource"},
    {"factor", "reduction_factor"},
    {"objective", "metric"},
    {"objective", "direction directions", "objective, which is always minimised"},
    {"validation_error", "accuracy val_accuracy acc", "validation_error, which is 1 - accuracy"},
    {"validation_error", "error val_error"},
    {"validation_loss", "loss val_loss"},
    {"parameters", "num_parameters params"},
    {"seconds", "time"},
    {"joules", "energy"},
    {"command", "script program cmd"},
    {"first", "initial_points points_to_evaluate enqueue_trial warm_start"},
    {"retries", "max_retry"},
    {"probability", "migration_probability"},
    {"migrants", "migration_topology"},
    {"emigrants", "emigration_propagator"},
    {"best", "SelectMin"},
    {"exchange", "migration"},
    // the rest of a configuration
    {"model", "layers network architecture"},
    {"training", "train"},
    {"seed", "random_state random_seed rng"},
    {"slots", "n_jobs"},
    {"islands", "num_islands n_islands"},
    {"ranks", "ranks_per_worker"},
    {"threads", "num_threads n_threads"},
    {"cuda", "gpu"},
    {"device", "accelerator gpus"},
    {"communicator", "backend"},
    {"level", "verbose verbosity"},
    {"log", "logging"},
    // options
    {"run", "output out out_dir save_dir"},
    {"fresh", "overwrite force"},
    {"top", "n limit"},
    {"samples", "n"},
    {"follow", "watch live"},
    // verbs
    {"evolve", "run start search optimize tune"},
    {"evolve", "resume continue", "evolve, which resumes a run by itself"},
    {"train", "fit"},
    {"show", "results best"},
    {"status", "list ls ps"},
    {"test", "evaluate predict"},
    {"plan", "validate check estimate"},
    {"replay", "reproduce"},
    {"config", "keys"},
    {"doctor", "info"},
    {"data", "generate", "data generate"},
});

/// Returns the lower-case letters and digits of a word, without a qualification ("torch.nn.") and arguments ("(3, 2)").
std::string plain_letters(std::string_view word) {
    word = word.substr(0, word.find('('));
    if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos && dot + 1 < word.size()) {
        word = word.substr(dot + 1);
    }
    std::string letters;
    for (const char letter : word) {
        if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        }
    }
    return letters;
}

}  // namespace

std::span<const Synonyms> synonyms() {
    return table;
}

bool is_same_word(std::string_view a, std::string_view b) {
    const std::string letters = plain_letters(a);
    return !letters.empty() && letters == plain_letters(b);
}

namespace {

/// Returns true if `word` is one of the words in `typed`, which blanks separate.
bool is_one_of(std::string_view word, std::string_view typed) {
    for (std::size_t begin = 0; begin < typed.size();) {
        const std::size_t end = std::min(typed.find(' ', begin), typed.size());
        if (is_same_word(word, typed.substr(begin, end - begin))) {
            return true;
        }
        begin = end + 1;
    }
    return false;
}

/// Returns the first row of the table that leads from `word` to a word in `known`, or null.
const Synonyms* row_of(std::string_view word, std::span<const std::string> known) {
    const auto* const row = std::find_if(table.begin(), table.end(), [&](const Synonyms& one) {
        return is_one_of(word, one.typed) && std::find(known.begin(), known.end(), one.own) != known.end();
    });
    return row == table.end() ? nullptr : row;
}

}  // namespace

std::optional<std::string> own_word(std::string_view word, std::span<const std::string> known) {
    const auto same =
        std::find_if(known.begin(), known.end(), [&](const std::string& one) { return is_same_word(word, one); });
    if (same != known.end()) {
        return *same;
    }
    const Synonyms* const row = row_of(word, known);
    return row == nullptr ? std::nullopt : std::optional(std::string(row->own));
}

std::optional<std::string> meant_word(std::string_view word, std::span<const std::string> known) {
    const auto own = own_word(word, known);
    return own ? own : nearest_word(word, known);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const auto own = own_word(word, known);
    const Synonyms* const row = own ? row_of(word, known) : nullptr;
    if (row != nullptr && *own == row->own && !row->shown.empty()) {
        return " (did you mean " + std::string(row->shown) + "?)";
    }
    const auto meant = meant_word(word, known);
    return meant ? " (did you mean '" + *meant + "'?)" : "";
}

}  // namespace finch
