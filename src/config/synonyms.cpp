#include "finch/config/synonyms.hpp"

#include "finch/base/words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace finch::config {
namespace {

struct Row {
    std::string_view pairs;    ///< "typed=own", separated by blanks
    std::string_view shown{};  ///< how a message shows the own word
};

/// The words of other tools in their spelling, and Finch's words. If a word has several own words, the first one that
/// is accepted counts.
constexpr auto table = std::to_array<Row>({
    {"loguniform=real suggest_loguniform=real", "{real: [low, high], scale: log}"},
    {"quniform=real", "{real: [low, high], step: ...}"},
    {"type=real low=real high=real min=real max=real range=real bounds=real",
     "{real: [low, high]}, {int: [low, high]} or {choice: [a, b]}"},
    {"log=scale distribution=scale", "scale: log"},
    {"DepthwiseConv2D=conv", "conv: {groups: depthwise}"},
    {"residual_block=block", "block: {residual: true}"},
    {"relu=activation tanh=activation sigmoid=activation gelu=activation silu=activation leaky_relu=activation",
     "{activation: NAME}"},
    {"betas=beta1", "beta1 and beta2"},
    {"clamped=basic", "basic with clamping: 0.6"},
    {"constriction=canonical", "canonical with clamping: 10"},
    {"direction=objective directions=objective", "objective, which is always minimised"},
    {"accuracy=validation_error val_accuracy=validation_error acc=validation_error",
     "validation_error, which is 1 - accuracy"},
    // PyTorch
    {"Conv2d=conv MaxPool2d=max_pool AvgPool2d=average_pool AdaptiveAvgPool2d=global_average_pool "
     "BatchNorm2d=batch_norm Sequential=block out_channels=channels features=channels features=units "
     "out_features=units hidden_size=units num_classes=classes kernel_size=kernel p=rate eps=epsilon "
     "nonlinearity=activation swish=silu lrelu=leaky_relu identity=none skip_connection=residual "
     "concat=concatenate lr=learning_rate max_epochs=epochs gradient_accumulation_steps=micro_batches "
     "accumulate_grad_batches=micro_batches lr_scheduler=schedule scheduler=schedule clip_grad_norm=clip_norm "
     "gradient_clip_val=clip_norm max_grad_norm=clip_norm criterion=loss loss_fn=loss "
     "CrossEntropyLoss=cross_entropy MSELoss=mean_squared_error L1Loss=mean_absolute_error amp=precision "
     "dtype=precision half=float16 fp16=float16 bf16=bfloat16 fp32=float32 kaiming=he wd=weight_decay "
     "CosineAnnealingLR=cosine OneCycleLR=one_cycle StepLR=step ExponentialLR=exponential step_size=every "
     "gamma=factor eta_min=minimum pct_start=rise div_factor=start dataset=data dataset=kind root=path "
     "data_dir=path transforms=augmentation RandomHorizontalFlip=mirror RandomRotation=rotation "
     "RandomErasing=cutout std=deviation num_workers=threads"},
    // Keras
    {"Convolution2D=conv Dense=linear MaxPooling2D=max_pool AveragePooling2D=average_pool "
     "GlobalAveragePooling2D=global_average_pool BatchNormalization=batch_norm LayerNormalization=layer_norm "
     "filters=channels neurons=units n_classes=classes pool_size=kernel strides=stride dilation_rate=dilation "
     "dropout_rate=rate act=activation categorical_crossentropy=cross_entropy "
     "sparse_categorical_crossentropy=cross_entropy mse=mean_squared_error mae=mean_absolute_error "
     "early_stop=early_stopping mixed_precision=precision kernel_initializer=initialization glorot=xavier "
     "horizontal_flip=mirror val_split=validation_samples validation_split=validation_samples "
     "val_error=validation_error val_loss=validation_loss"},
    // Optuna and Ray Tune
    {"float=real suggest_float=real uniform=real suggest_int=int randint=int categorical=choice "
     "suggest_categorical=choice choices=choice q=step search_space=space hyperparameters=space "
     "n_trials=evaluations num_trials=evaluations trials=evaluations max_evals=evaluations "
     "max_evaluations=evaluations timeout=hours timeout=timeout_seconds sampler=propagator TPESampler=auto "
     "tpe=auto CmaEsSampler=cmaes GPSampler=screened bayesian=screened gaussian_process=screened nsga2=genetic "
     "RandomSampler=random random_search=random pruner=pruning pbt=inherit population_based_training=inherit "
     "PopulationBasedTraining=inherit HyperbandPruner=halving hyperband=halving asha=halving "
     "SuccessiveHalvingPruner=halving MedianPruner=median min_resource=first_epoch reduction_factor=factor "
     "metric=objective points_to_evaluate=first enqueue_trial=first warm_start=first max_retry=retries "
     "n_jobs=slots"},
    // Propulate
    {"CMAPropagator=cmaes pso=swarm BasicPSO=swarm particle_swarm=swarm genetic_algorithm=genetic ga=genetic "
     "differential_evolution=evolution de=evolution random_init_prob=random ParallelNelderMead=nelder_mead "
     "simplex=nelder_mead pop_size=population population_size=population crossover_prob=crossover "
     "crossover_rate=crossover mutation_prob=mutation mutation_rate=mutation initial_points=first "
     "migration_probability=probability migration_topology=migrants emigration_propagator=emigrants "
     "SelectMin=best migration=exchange num_islands=islands n_islands=islands"},
    // Other tools, and plain words
    {"number=real double=real integer=int options=choice values=choice constant=value fixed=value "
     "logarithmic=log condition=when parent=when convolution=conv fully_connected=linear fc=linear "
     "pool=max_pool avg_pool=average_pool units=channels channels=units window=kernel size=kernel "
     "logistic=sigmoid num_layers=repeat n_layers=repeat eta=learning_rate n_epochs=epochs num_epochs=epochs "
     "batch=batch_size bs=batch_size warmup=warm_up_epochs loss_function=loss ema=average ema_decay=average "
     "init=initialization cosine_annealing=cosine format=kind type=kind folder=path file=path mnist=idx "
     "cifar10=cifar cifar100=cifar h5=hdf5 image_size=size augment=augmentation flip=mirror translate=shift "
     "rotate=rotation n_train=training_samples train_samples=training_samples streaming=streamed "
     "parameters=space max_hours=hours algorithm=propagator error=validation_error loss=validation_loss "
     "num_parameters=parameters params=parameters time=seconds energy=joules script=command program=command "
     "cmd=command layers=model network=model architecture=model train=training random_state=seed "
     "random_seed=seed rng=seed ranks_per_worker=ranks num_threads=threads n_threads=threads gpu=cuda "
     "accelerator=device gpus=device backend=communicator verbose=level verbosity=level logging=log output=run "
     "out=run out_dir=run save_dir=run overwrite=fresh force=fresh n=top limit=top n=samples watch=follow "
     "live=follow"},
    // Launchers, and options of other programs
    {"resume=set continue=set restart=set load_if_exists=set",
     "a run resumes by itself: leave this out; --fresh begins a new run"},
    {"n=set np=set ntasks=set nproc=set nproc_per_node=set num_processes=set workers=set n_jobs=set j=set",
     "the launcher starts the ranks: mpirun -n 4 finch ..., or srun"},
    // Verbs
    {"run=evolve start=evolve search=evolve optimize=evolve tune=evolve fit=train results=show best=show "
     "list=status ls=status ps=status evaluate=test predict=test validate=plan check=plan estimate=plan "
     "reproduce=replay keys=config info=doctor"},
    {"resume=evolve continue=evolve", "evolve, which resumes a run by itself"},
    {"generate=data", "data generate"},
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

std::vector<Synonym> read_table() {
    std::vector<Synonym> all;
    for (const Row& row : table) {
        for (std::size_t begin = 0; begin < row.pairs.size();) {
            const std::size_t end = std::min(row.pairs.find(' ', begin), row.pairs.size());
            const std::size_t equals = row.pairs.find('=', begin);
            all.push_back({row.pairs.substr(begin, equals - begin),
                           std::string(row.pairs.substr(equals + 1, end - equals - 1)), row.shown});
            begin = end + 1;
        }
    }
    return all;
}

}  // namespace

std::span<const Synonym> synonyms() {
    static const std::vector<Synonym> all = read_table();
    return all;
}

bool is_same_word(std::string_view a, std::string_view b) {
    const std::string letters = plain_letters(a);
    return !letters.empty() && letters == plain_letters(b);
}

const Synonym* synonym_of(std::string_view word, std::span<const std::string> known) {
    for (const Synonym& synonym : synonyms()) {
        if (is_same_word(word, synonym.typed) && std::find(known.begin(), known.end(), synonym.own) != known.end()) {
            return &synonym;
        }
    }
    return nullptr;
}

std::optional<std::string> own_word(std::string_view word, std::span<const std::string> known) {
    const auto same =
        std::find_if(known.begin(), known.end(), [&](const std::string& one) { return is_same_word(word, one); });
    if (same != known.end()) {
        return *same;
    }
    const Synonym* const synonym = synonym_of(word, known);
    return synonym == nullptr ? std::nullopt : std::optional(synonym->own);
}

std::optional<std::string> meant_word(std::string_view word, std::span<const std::string> known) {
    const auto own = own_word(word, known);
    return own ? own : nearest_word(word, known);
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const auto meant = meant_word(word, known);
    const Synonym* const synonym = synonym_of(word, known);
    if (meant && synonym != nullptr && *meant == synonym->own && !synonym->shown.empty()) {
        return " (did you mean " + std::string(synonym->shown) + "?)";
    }
    return meant ? " (did you mean '" + *meant + "'?)" : "";
}

}  // namespace finch::config
