#include "finch/base/error.hpp"
#include "finch/base/files.hpp"
#include "finch/base/format.hpp"
#include "finch/base/log.hpp"
#include "finch/base/words.hpp"
#include "finch/images/image.hpp"

#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <span>
#include <system_error>
#include <utility>

namespace finch::data {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

constexpr std::array<std::string_view, 4> litter{"__macosx", "thumbs.db", "desktop.ini", "@eadir"};
/// The extensions of images, with a space around each. Files with these extensions are read, or refused by name.
constexpr std::string_view image_extensions =
    " .png .jpg .jpeg .jpe .jfif .apng .avif .blp .bmp .bw .cur .dcx .dds .dib .eps .fit .fits .flc .fli .ftc .ftu "
    ".gbr "
    ".gif .icb .icns .ico .iim .im .j2c .j2k .jp2 .jpc .jpf .jpx .msp .pbm .pcd .pcx .pgm .pnm .ppm .ps .psd .pxr .ras "
    ".rgb .rgba .sgi .tga .tif .tiff .vda .vst .webp .xbm .xpm ";

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    return text;
}

std::string name_of(const fs::path& path) {
    return path.filename().string();
}

bool is_folder(const fs::path& path) {
    std::error_code failure;
    return fs::is_directory(path, failure);
}

bool is_hidden_name(const fs::path& path) {
    const std::string name = name_of(path);
    return name.starts_with('.') || std::find(litter.begin(), litter.end(), lower(name)) != litter.end();
}

/// Returns the entries of a folder, sorted by name. Throws ConfigError if the folder cannot be read.
Paths entries_of(const fs::path& folder) {
    try {
        return list_folder(folder);
    } catch (const StorageError& error) {
        check_storage_of(folder);
        throw ConfigError(error.what());
    }
}

Paths folders_in(const fs::path& folder) {
    Paths folders = entries_of(folder);
    std::erase_if(folders, [](const fs::path& path) { return !is_folder(path) || is_hidden_name(path); });
    return folders;
}

/// True for the extension of an image. A file without extension is an image if its first bytes say so.
bool has_image_name(const fs::path& file) {
    const std::string extension = lower(file.extension().string());
    if (!extension.empty()) {
        return image_extensions.find(" " + extension + " ") != std::string_view::npos;
    }
    std::array<char, 16> start{};
    std::ifstream(file, std::ios::binary).read(start.data(), start.size());
    return !images::format_of(std::as_bytes(std::span(start))).empty();
}

/// The numbers of skipped and turned files, by reason, with an example of each.
class Notes {
public:
    void add(const std::string& what, const fs::path& example, std::int64_t count = 1) {
        const auto note = std::find_if(notes_.begin(), notes_.end(), [&](const Note& one) { return one.what == what; });
        if (note != notes_.end()) {
            note->count += count;
        } else if (count > 0) {
            notes_.push_back({what, example, count});
        }
    }

    /// Adds a file, or all files in a folder, to the skipped ones.
    void skip(const fs::path& path, const char* why) {
        std::error_code failure;
        Paths files{path};
        for (fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, failure), end;
             !failure && entry != end; entry.increment(failure)) {
            files.push_back(entry->path());
        }
        std::erase_if(files, is_folder);
        if (!files.empty()) {
            const char* const nature = is_hidden_name(path)        ? "hidden files"
                                       : fs::exists(path, failure) ? why
                                                                   : "dead links";
            add(fmt::format("skipped {}", nature), *std::min_element(files.begin(), files.end()), std::ssize(files));
        }
    }

    void log(const fs::path& folder) const {
        for (const Note& note : notes_) {
            spdlog::info("{}: {}: {}, for example {}", folder.string(), note.what, note.count,
                         printable_line(note.example.lexically_relative(folder).string()));
        }
    }

private:
    struct Note {
        std::string what;
        fs::path example;
        std::int64_t count = 0;
    };
    std::vector<Note> notes_;
};

/// Describes what a folder has: "2 folders and 4 files (a, b, 1.txt, …)".
std::string contents_text(const fs::path& folder) {
    Paths paths = entries_of(folder);
    std::erase_if(paths, is_hidden_name);
    const auto files = std::stable_partition(paths.begin(), paths.end(), is_folder);
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, paths.size()); ++i) {
        names += (i > 0 ? ", " : " (") + printable_line(name_of(paths[i]));
    }
    return fmt::format("{} and {}{}{}", counted(files - paths.begin(), "folder"), counted(paths.end() - files, "file"),
                       names,
                       paths.size() > 3 ? ", …)"
                       : paths.empty()  ? ""
                                        : ")");
}

/// The folder of each set, by Part; empty if there is none.
using PartFolders = std::array<fs::path, 3>;

/// What the name of a folder says: its set, if the name has words for just one, and the rest: "cars" of cars_train.
struct SetName {
    std::optional<Part> part{};
    std::string rest{};
};

SetName set_name(const fs::path& folder) {
    static const std::string more = "(?:set|data|dataset|split|folder|seg|x|images?|imgs?|photos?|pictures?|files?)";
    static const std::regex words("\\b(?:(train|training)|(val|valid|validation|dev)|(tests?|testing))" + more +
                                  "?\\b");
    static const std::regex breaks("([a-z])([A-Z0-9])|[ _.-]+");  // trainImages, train2017
    static const std::regex fillers("\\b" + more + "\\b| ");
    const std::string name = lower(std::regex_replace(name_of(folder), breaks, "$1 $2"));
    SetName found{.rest = std::regex_replace(std::regex_replace(name, words, ""), fillers, "")};
    for (std::sregex_iterator word(name.begin(), name.end(), words), end; word != end; ++word) {
        const Part part = (*word)[1].matched ? Part::training : (*word)[2].matched ? Part::validation : Part::test;
        if (found.part && found.part != part) {
            return {};
        }
        found.part = part;
    }
    return found;
}

/// Finds the folders of the sets, in `folder` or in its single folder. If there is none, `folder` itself is the
/// training set. Besides the word for its set, the name of a set says nothing, or what the name of another set says.
PartFolders find_parts(const fs::path& folder) {
    const Paths folders = folders_in(folder);
    std::vector<SetName> names;
    std::transform(folders.begin(), folders.end(), std::back_inserter(names), set_name);
    const auto is_set = [&names](const SetName& name) {
        return name.part && (name.rest.empty() || std::any_of(names.begin(), names.end(), [&](const SetName& other) {
                                 return other.part && other.part != name.part && other.rest == name.rest;
                             }));
    };
    const bool are_sets = std::all_of(names.begin(), names.end(), is_set);
    PartFolders found;
    for (std::size_t i = 0; i < folders.size(); ++i) {
        if (!names[i].part || (!are_sets && folders_in(folders[i]).empty())) {  // a class may have the name `train`
            continue;
        }
        const char* const part = part_names[static_cast<std::size_t>(*names[i].part)];
        fs::path& set = found[static_cast<std::size_t>(*names[i].part)];
        if (!set.empty() || !is_set(names[i])) {
            refuse(folders[i], is_set(names[i])
                                   ? fmt::format("is a {} set, and so is {}; keep one of them", part, set.string())
                                   : fmt::format("may be a {} set or a class; expected for a set a name such as train, "
                                                 "train_set or seg_test, for a class a name without such a word",
                                                 part));
        }
        set = folders[i];
    }
    if (found == PartFolders()) {
        const PartFolders inner = folders.size() == 1 ? find_parts(folders[0]) : PartFolders();
        return inner == PartFolders() || inner[0] == folders[0] ? PartFolders{folder} : inner;
    }
    return found;
}

/// Returns the names of the classes: of the folders in the training set, or in `part` if there is no training set.
std::vector<std::string> find_classes(const PartFolders& parts, Part part) {
    const fs::path& first = parts[0].empty() ? parts[static_cast<std::size_t>(part)] : parts[0];
    std::vector<std::string> classes;
    for (const fs::path& path : folders_in(first)) {
        classes.push_back(name_of(path));
    }
    if (classes.size() < (parts[0].empty() ? 1U : 2U)) {  // `finch test` takes any of the network's classes
        refuse(first, fmt::format("has {}; expected a folder of PNG or JPEG files for each of two classes or more",
                                  contents_text(first)));
    }
    for (const fs::path& folder : parts) {
        for (const fs::path& path : folder.empty() ? Paths() : folders_in(folder)) {
            if (std::find(classes.begin(), classes.end(), name_of(path)) == classes.end()) {
                refuse(path, fmt::format("is a class without images in {}; add some there, or remove the folder",
                                         first.string()));
            }
        }
    }
    return classes;
}

/// Adds the images in `folder` and below to `found`, in the order of their names. `around` has the folders that contain
/// `folder`.
void find_images(const fs::path& folder, Paths around, Notes& notes, Paths& found) {
    std::error_code failure;
    around.push_back(fs::canonical(folder, failure));
    for (const fs::path& path : entries_of(folder)) {
        if (is_hidden_name(path) || !fs::exists(path, failure)) {
            notes.skip(path, "");
        } else if (is_folder(path)) {
            if (std::find(around.begin(), around.end(), fs::canonical(path, failure)) != around.end()) {
                notes.add("skipped links to a folder that contains them", path);
            } else if (const SetName name = set_name(path);
                       name.part.value_or(Part::training) != Part::training && name.rest.empty()) {
                refuse(path, "is a set within a class; expected test/CLASS, not CLASS/test; or give it another name");
            } else {
                find_images(path, around, notes, found);
            }
        } else if (!fs::is_regular_file(path, failure)) {
            notes.skip(path, "FIFOs, sockets and devices");
        } else if (!has_image_name(path)) {
            notes.skip(path, "files without an image's extension");
        } else {
            found.push_back(path);
        }
    }
}

/// The images of a set, and the class of each.
struct LabelledFiles {
    Paths files;
    std::vector<std::int32_t> labels;
};

LabelledFiles find_labelled(const fs::path& root, const fs::path& folder, const std::vector<std::string>& classes,
                            Part part, Notes& notes) {
    LabelledFiles found;
    std::vector<std::string> empty;
    std::error_code failure;
    for (std::size_t label = 0; label < classes.size(); ++label) {
        const std::size_t before = found.files.size();
        if (is_folder(folder / classes[label])) {
            find_images(folder / classes[label], {fs::canonical(root, failure), fs::canonical(folder, failure)}, notes,
                        found.files);
        }
        found.labels.resize(found.files.size(), static_cast<std::int32_t>(label));
        if (found.files.size() == before) {
            empty.push_back(classes[label]);
        }
    }
    if (found.files.empty()) {
        refuse(folder,
               fmt::format("has {}, but no images in folders of classes; expected PNG or JPEG files such as {}, "
                           "or move the folder away",
                           contents_text(folder), (folder / classes[0] / "1.png").string()));
    }
    if (!empty.empty() && part == Part::training) {
        refuse(folder / empty[0],
               "holds no images, so nothing would train this class; put some there, or remove the folder");
    }
    if (!empty.empty()) {
        spdlog::warn("{}: no images of {}", folder.string(), printable_line(join(empty)));
    }
    for (const fs::path& path : entries_of(folder)) {
        if (std::find(classes.begin(), classes.end(), name_of(path)) == classes.end()) {
            notes.skip(path, "files in no class's folder");
        }
    }
    return found;
}

/// Notes the files that are in none of the sets' folders.
void note_outside(const fs::path& root, const PartFolders& parts, Notes& notes) {
    for (const fs::path& path : parts[0] == root ? Paths() : entries_of(parts[0].parent_path())) {
        if (std::find(parts.begin(), parts.end(), path) == parts.end()) {
            notes.skip(path, "files outside of the sets");
        }
    }
}

}  // namespace

std::optional<Dataset> read_folder(const fs::path& root, const Options& options, Part part) {
    need_folder(root, "expected a folder with images in folders of classes, as training/cat/1.png");
    if (options.memory == Memory::streamed) {
        refuse_to_stream(root, "its images are compressed", "let tools/images_to_hdf5.py write HDF5");
    }
    PartFolders parts = find_parts(root);
    fs::path& folder = parts[static_cast<std::size_t>(part)];
    if (folder.empty() && part != Part::training) {
        return std::nullopt;
    }
    if (folder.empty()) {
        refuse(root, fmt::format("has {}, but no training set; expected {} or {}", contents_text(root),
                                 (root / "training").string(), (root / "train").string()));
    }
    Notes notes;
    if (part == Part::training) {
        note_outside(root, parts, notes);
        if (!parts[1].empty() && !std::holds_alternative<OwnValidation>(options.validation)) {
            spdlog::warn(
                "data.validation: the images in {} are not used, because random training images are the "
                "validation set; data.validation: own uses them",
                parts[1].string());
        }
    }
    for (fs::path& set : parts) {
        const Paths inner = set.empty() || set == root ? Paths() : folders_in(set);
        const bool is_packed = inner.size() == 1 && set_name(inner[0]).rest.empty() && !folders_in(inner[0]).empty();
        set = is_packed ? inner[0] : set;  // train/train/cat
    }
    const std::vector<std::string> classes = find_classes(parts, part);
    LabelledFiles found = find_labelled(root, folder, classes, part, notes);
    Dataset set;
    set.labels = std::move(found.labels);
    try {
        const std::vector<std::string_view> remarks = read_image_files(folder, found.files, options, set);
        for (std::size_t i = 0; i < remarks.size(); ++i) {
            notes.add(std::string(remarks[i]), found.files[i], remarks[i].empty() ? 0 : 1);
        }
    } catch (const ConfigError& error) {
        std::string text = error.what();
        try {  // one start names the refused files of both sets
            static_cast<void>(part == Part::training ? read_folder(root, options, Part::test) : std::nullopt);
        } catch (const ConfigError& of_test) {
            text += std::string("\n") + of_test.what();
        }
        throw ConfigError(text);
    }
    std::transform(classes.begin(), classes.end(), std::back_inserter(set.class_names),
                   [](const std::string& name) { return printable_line(name); });
    for (auto one = set.class_names.begin(); one != set.class_names.end(); ++one) {
        if (std::find(set.class_names.begin(), one, *one) != one) {
            refuse(root,
                   fmt::format("two classes are both called '{}' without their control characters; rename one", *one));
        }
    }
    notes.log(root);
    return set;
}

}  // namespace finch::data
