#include "finch/config/tables.hpp"

#include "finch/search/function.hpp"

#include <algorithm>
#include <limits>

namespace finch::config {

namespace words {
const std::vector<std::string> data_kinds{"idx", "cifar", "hdf5", "generated"};
const std::vector<std::string> data_axes{"auto", "NHWC", "NCHW"};
const std::vector<std::string> activations{"none", "relu", "sigmoid", "tanh"};
const std::vector<std::string> layer_activations{"relu", "sigmoid", "tanh"};
const std::vector<std::string> scale_learning_rate{"none", "sqrt", "linear"};
const std::vector<std::string> precisions{"float32", "tf32", "bfloat16"};
const std::vector<std::string> scales{"linear", "log"};
const std::vector<std::string> objectives{"validation_loss", "validation_error"};
const std::vector<std::string> exchange_kinds{"none", "migration", "pollination"};
const std::vector<std::string> topologies{"all", "ring"};
const std::vector<std::string> devices{"auto", "cpu", "cuda"};
const std::vector<std::string> communicators{"auto", "nccl", "staged", "mpi"};
const std::vector<std::string> log_levels{"debug", "info", "warning", "error"};
const std::vector<std::string> log_ranks{"leader", "workers", "all"};
}  // namespace words

namespace {

constexpr std::int64_t million = 1000000;

Domain either(std::vector<Domain> domains) {
    return {Either{std::move(domains)}};
}
Domain whole(std::int64_t low, std::int64_t high) {
    return {Whole{low, high}};
}
Domain real(double low, double high) {
    return {Real{low, high, false}};
}
Domain above(double low, double high) {
    return {Real{low, high, true}};
}
Domain word(std::vector<std::string> some) {
    return {Word{std::move(some)}};
}
Domain section(std::vector<Key> keys) {
    return {Section{std::move(keys)}};
}

bool is_run_name(const std::string& text) {
    static const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
    return !text.empty() && text.size() <= 100 && text.front() != '.' && text.front() != '-' &&
           text.find_first_not_of(letters) == std::string::npos;
}

bool is_path(const std::string& text) {
    return !text.empty() && text.size() <= 4096;
}

Domain path() {
    return {Text{"a path", is_path, {"some/where"}, {"''"}}};
}

Domain data_section() {
    return section({
        {"kind", "generated", word(words::data_kinds),
         "idx: MNIST's format; cifar: CIFAR-10's binary version; hdf5: training/images, training/labels, test/images, "
         "test/labels; generated: distorted digits",
         GeneUse::never},
        {"path", "null", either({{Null{}}, path()}),
         "the folder with the files (hdf5: the file), relative to the working directory; generated needs none",
         GeneUse::never},
        {"axes", "auto", word(words::data_axes),
         "hdf5: the order of the images' axes; auto: as their attribute axes says, else the one axis of 1 to 4 is C",
         GeneUse::never},
        {"normalize", "{}",
         section({{"mean", "0", either({real(0, 1), {List{{real(0, 1)}}}}),
                   "subtracted after division by 255; a list has one per channel"},
                  {"deviation", "1", either({above(0, 255), {List{{above(0, 255)}}}}),
                   "divides after that; a list has one per channel"}}),
         "pixels become (pixel / 255 - mean) / deviation"},
        {"training_samples", "all", either({word({"all"}), whole(1, 4294967295)}),
         "how many train; the seed chooses them from what validation leaves"},
        {"validation_samples", "2000", whole(1, 4294967295),
         "split off the training set by the seed; the test set is for the best model only"},
        {"samples", "12000", whole(10, 100 * million),
         "generated: size of the training set; the test set has a sixth of it", GeneUse::never},
        {"size", "28", whole(8, 512), "generated: height and width of an image in pixels", GeneUse::never},
    });
}

Key activation() {
    return {"activation", "none", word(words::activations), "applied to the result"};
}
Key repeat() {
    return {"repeat", "1", whole(0, 1000), "so many such layers in a row; 0: none"};
}

Key pool(const std::string& name, const std::string& meaning) {
    return {name, "{}",
            section({{"kernel", "2", whole(1, 1024), "height and width of the window"},
                     {"stride", "kernel", either({word({"kernel"}), whole(1, 1024)}), "step of the window"},
                     {"padding", "0", whole(0, 512), "rows and columns added on each side, at most half the kernel"},
                     repeat()}),
            meaning};
}

Domain layer() {
    const Domain padding = either({word({"same"}), whole(0, 1024)});
    return {Variants{{
        {"conv", "{}",
         section(
             {{"channels", "10", whole(1, 65536), "channels of the result"},
              {"kernel", "3", whole(1, 1024), "height and width of the kernel"},
              {"stride", "1", whole(1, 1024), "step of the kernel"},
              {"padding", "same", padding, "rows and columns of zeros on each side; same: as many as keep the size"},
              activation(),
              repeat()}),
         "a convolution with bias"},
        pool("max_pool", "the largest value of each window"),
        pool("average_pool", "the mean of each window"),
        {"flatten", "{}", section({}), "everything in a row, in the order channels, rows, columns"},
        {"linear", "{}",
         section({{"units", "classes", either({word({"classes"}), whole(1, 16 * million)}),
                   "size of the result; classes: as many as the data has"},
                  activation(),
                  repeat()}),
         "every input to every unit, with bias"},
        {"activation", "relu", word(words::layer_activations), "an activation by itself"},
    }}};
}

Domain optimizer() {
    const Key weight_decay{"weight_decay", "0", real(0, 10), "pull of the weights towards zero"};
    const Key epsilon{"epsilon", "1e-8", above(0, 1), "keeps the denominator from zero"};
    const Key beta1{"beta1", "0.9", real(0, 0.999999), "memory of the gradient's mean"};
    const Key beta2{"beta2", "0.999", real(0, 0.999999), "memory of the squared gradient's mean"};
    Key decoupled_decay = weight_decay;
    decoupled_decay.fallback = "0.01";
    Key adadelta_epsilon = epsilon;
    adadelta_epsilon.fallback = "1e-6";
    return {Variants{{
        {"sgd", "{}",
         section({{"momentum", "0", real(0, 0.999999), "share of the last step that goes on"},
                  weight_decay,
                  {"nesterov", "false", {Flag{}}, "look ahead along the momentum, which must not be 0"}}),
         "stochastic gradient descent (torch.optim.SGD)"},
        {"adam", "{}", section({beta1, beta2, epsilon, weight_decay}), "torch.optim.Adam"},
        {"adamw", "{}", section({beta1, beta2, epsilon, decoupled_decay}), "torch.optim.AdamW"},
        {"adadelta", "{}",
         section({{"rho", "0.9", real(0, 0.999999), "memory of squared gradients and steps"},
                  adadelta_epsilon,
                  weight_decay}),
         "torch.optim.Adadelta"},
    }}};
}

Domain schedule() {
    return {Variants{{
        {"constant", "{}", section({}), "the same rate in every epoch"},
        {"step", "{}",
         section({{"every", "1", whole(1, million), "epochs between two changes"},
                  {"factor", "0.1", above(0, 10), "multiplies the rate"}}),
         "multiplied by a factor every so many epochs"},
        {"exponential", "{}", section({{"factor", "0.95", above(0, 10), "multiplies the rate after each epoch"}}),
         "multiplied by a factor after each epoch"},
        {"cosine", "{}", section({{"minimum", "0", real(0, 1), "share of the first rate that is left at the end"}}),
         "down along half a cosine over all epochs"},
    }}};
}

Domain training_section() {
    return section({
        {"epochs", "10", whole(1, million), "passes over the training set at most"},
        {"batch_size", "64", either({{Null{}}, whole(1, 16 * million)}),
         "samples in one step of the whole worker, however many ranks it has; null: batch_size_per_rank says it"},
        {"batch_size_per_rank", "null", either({{Null{}}, whole(1, 16 * million)}),
         "in place of batch_size: samples of each rank in one step"},
        {"scale_learning_rate", "none", word(words::scale_learning_rate),
         "with batch_size_per_rank: multiply the rate by the number of ranks, or by its square root"},
        {"optimizer", "adadelta", optimizer(), "torch.optim's definitions and defaults"},
        {"learning_rate", "1.0", above(0, 1000), "the first epoch's rate"},
        {"schedule", "constant", schedule(), "how the rate changes from epoch to epoch"},
        {"early_stopping", "none",
         either({word({"none"}),
                 section({{"patience", "5", whole(1, million), "epochs without a better value of the objective"}})}),
         "end a training that does not improve"},
        {"precision", "float32", word(words::precisions),
         "of products; sums and memory are float32 in any case; all but float32 need a GPU"},
        {"deterministic", "true", {Flag{}}, "the same bits each time on the same kind of machine"},
    });
}

Domain gene_section() {
    const double huge = 1e300;
    const std::int64_t exact = std::int64_t{1} << 53;  // whole numbers up to it are exact in a genome
    const Text option{
        "a word or a number", [](const std::string& text) { return !text.empty() && text.front() != '$'; }, {}, {}};
    return {Section{{
                        {"real", "[0, 1]", {List{{real(-huge, huge)}, 2, 2}}, "[low, high]: a real number"},
                        {"int", "[0, 1]", {List{{whole(-exact, exact)}, 2, 2}}, "[low, high]: a whole number"},
                        {"choice", "[a, b]", {List{{{option}}, 1, 10000}}, "one of several words or numbers"},
                        {"scale", "linear", word(words::scales), "real: log draws uniformly in the logarithm"},
                    },
                    true}};
}

Domain function_section() {
    std::vector<std::string> names;
    for (const search::Function& function : search::functions()) {
        names.push_back(function.name);
    }
    return section(
        {{"function", "sphere", word(names), "a benchmark function to be minimised"},
         {"dimensions", "null", either({{Null{}}, whole(1, 500)}), "genes; null: the function's usual number"},
         {"seconds", "0", real(0, 86400), "median time that an evaluation pretends to take"},
         {"spread", "0.5", real(0, 10), "deviation of the logarithm of that time"}});
}

Domain budget_section() {
    return section({
        {"evaluations", "null", either({{Null{}}, whole(1, 4000 * million)}), "of the whole run, exact, over restarts"},
        {"generations", "null", either({{Null{}}, whole(1, 4000 * million)}), "evaluations of each worker"},
        {"hours", "null", either({{Null{}}, above(0, million)}), "wall time, summed over restarts"},
        {"node_hours", "null", either({{Null{}}, above(0, million)}),
         "distinct nodes times wall time, summed over restarts"},
        {"target_loss", "null", either({{Null{}}, real(-1e300, 1e300)}), "end once the best loss is this or smaller"},
    });
}

Domain propagator() {
    return {Variants{{
        {"genetic", "{}",
         section({{"population", "16", whole(2, million), "parents are drawn from the best so many of an island"},
                  {"crossover", "0.7", real(0, 1), "probability that a gene comes from the first parent"},
                  {"mutation", "0.4", real(0, 1), "probability that one gene is drawn anew"},
                  {"random", "0.1", real(0, 1), "probability that all genes are drawn anew"},
                  {"sigma", "0.05", real(0, 10), "deviation of a real gene's change, as a share of its range"}}),
         "crossover and mutation, as Propulate's default chain does it"},
        {"random", "{}", section({}), "random search"},
    }}};
}

Domain search_section() {
    return section({
        {"space", "{}", {Named{{gene_section()}}}, "the genes: NAME: {real: [low, high]}, {int: …} or {choice: […]}"},
        {"objective", "validation_loss", either({word(words::objectives), function_section()}),
         "what is minimised; a function brings its own genes x0, x1, … and needs no model and no data"},
        {"propagator", "genetic", propagator(), "how individuals are bred"},
        {"exchange", "{}",
         section(
             {{"kind", "pollination", word(words::exchange_kinds), "migration: individuals move; pollination: copies"},
              {"topology", "all", word(words::topologies), "all: every island to every other; ring: to the next"},
              {"probability", "0.9", real(0, 1), "per island and round of its workers (one evaluation of each)"},
              {"migrants", "1", whole(1, million), "individuals per target island and exchange"}}),
         "between islands"},
        {"pruning", "none", word({"none"}), "ends unpromising trainings early"},
        {"budget", "{evaluations: 100}", budget_section(), "when the search ends: whichever comes first"},
    });
}

Domain workers_section() {
    const Domain sizes{List{{whole(1, million)}}};
    return section({
        {"ranks", "1", whole(1, million), "of one worker, which train one network together"},
        {"islands", "1", either({whole(1, million), sizes}), "a number, or the size of each in workers: [3, 1]"},
        {"slots", "1", whole(1, 1024), "individuals that one worker trains at once"},
        {"threads", "auto", either({word({"auto"}), whole(1, 4096)}), "of one rank; auto: the CPUs that it may use"},
        {"device", "auto", word(words::devices), "auto: a GPU where there is one"},
        {"communicator", "auto", word(words::communicators), "for gradients; auto: NCCL on GPUs, MPI on CPUs"},
        {"share_device", "false", {Flag{}}, "let several ranks use one GPU"},
        {"timeout_seconds", "60", real(1, 86400), "for the start of a group, and for a collective that does not end"},
    });
}

Domain build_configuration() {
    return section({
        {"name",
         "finch",
         {Text{"letters, digits, '.', '_' and '-', at most 100, a letter, digit or '_' first",
               is_run_name,
               {"a", "run-1.b"},
               {"a/b", ".hidden", "''", "'two words'", "-a"}}},
         "the run directory: runs/NAME (--run DIR says otherwise)"},
        {"seed", "1", whole(0, std::numeric_limits<std::int64_t>::max()), "all random choices depend on it"},
        {"data", "{}", data_section(), "the images; $name may stand for a value", GeneUse::allowed},
        {"model",
         "[{conv: {activation: relu}}, max_pool, flatten, linear]",
         {List{{layer()}, 1, 1000}},
         "layers in order; $name may stand for a value",
         GeneUse::allowed},
        {"training", "{}", training_section(), "of each individual; $name may stand for a value", GeneUse::allowed},
        {"search", "{}", search_section(), "what is searched, and how"},
        {"workers", "{}", workers_section(), "how ranks are grouped, and what they run on"},
        {"checkpoint", "{}",
         section({{"archive_seconds", "10", real(0.01, million), "between two writings of population.h5, at least"},
                  {"training_seconds", "60", real(0.01, million), "between two snapshots of unfinished trainings"}}),
         "what a killed run can lose"},
        {"log", "{}",
         section({{"level", "info", word(words::log_levels), "the least that is told"},
                  {"ranks", "leader", word(words::log_ranks), "who tells: world rank 0, every worker's leader, or all"},
                  {"path", "null", either({{Null{}}, path()}), "a file; null: standard output"},
                  {"interval_seconds", "10", real(0.1, million), "between two progress lines in a batch log"}}),
         "what is told, and where"},
    });
}

const Domain& part(const char* name) {
    const auto& keys = std::get<Section>(configuration().is).keys;
    return std::find_if(keys.begin(), keys.end(), [name](const Key& key) { return key.name == name; })->domain;
}

}  // namespace

const Domain& configuration() {
    static const Domain all = build_configuration();
    return all;
}
const Domain& data_table() {
    return part("data");
}
const Domain& model_table() {
    return part("model");
}
const Domain& training_table() {
    return part("training");
}

}  // namespace finch::config
