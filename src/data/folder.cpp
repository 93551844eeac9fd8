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
#include <span>
#include <system_error>
#include <utility>

namespace finch::data {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

constexpr std::array<std::pair<std::string_view, Part>, 6> accepted_names{{{"training", Part::training},
                                                                           {"train", Part::training},
                                                                           {"validation", Part::validation},
                                                                           {"valid", Part::validation},
                                                                           {"val", Part::validation},
                                                                           {"test", Part::test}}};
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
    void skip(const fs::path& path, const std::string& why) {
        Paths files;
        std::error_code failure;
        if (is_folder(path)) {
            fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, failure);
            for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
                if (!is_folder(entry->path())) {
                    files.push_back(entry->path());
                }
            }
        } else {
            files.push_back(path);
        }
        if (!files.empty()) {
            const bool is_dead = !fs::exists(path, failure);
            add("skipped " + (is_hidden_name(path) ? "hidden files"
                              : is_dead            ? "dead links"
                                                   : why),
                *std::min_element(files.begin(), files.end()), std::ssize(files));
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

/// Describes what a folder has: "2 folders (a, b) and 4 files (a.txt, b.txt, c.txt, …)".
std::string contents_text(const fs::path& folder) {
    const auto some = [](const Paths& paths, const char* noun) {
        constexpr std::size_t most_names = 3;
        std::vector<std::string> names;
        for (const fs::path& path : std::span(paths).first(std::min(paths.size(), most_names))) {
            names.push_back(printable_line(name_of(path)));
        }
        return fmt::format("{}{}{}{}", counted(std::ssize(paths), noun), paths.empty() ? "" : " (", join(names),
                           paths.empty()               ? ""
                           : paths.size() > most_names ? ", …)"
                                                       : ")");
    };
    Paths files = entries_of(folder);
    std::erase_if(files, is_hidden_name);
    const auto middle = std::stable_partition(files.begin(), files.end(), is_folder);
    const Paths folders(files.begin(), middle);
    files.erase(files.begin(), middle);
    return some(folders, "folder") + " and " + some(files, "file");
}

/// The folder of each set, by Part; empty if there is none.
using PartFolders = std::array<fs::path, 3>;

std::optional<Part> part_of(const fs::path& folder) {
    const std::string name = lower(name_of(folder));
    const auto* const found =
        std::find_if(accepted_names.begin(), accepted_names.end(), [&](const auto& one) { return one.first == name; });
    return found == accepted_names.end() ? std::nullopt : std::optional(found->second);
}

/// Finds the folders of the sets. If there is none, `folder` itself is the training set.
PartFolders find_parts(const fs::path& folder) {
    const Paths folders = folders_in(folder);
    Paths named = folders;
    std::erase_if(named, [](const fs::path& path) { return !part_of(path); });
    if (named.size() < folders.size()) {  // a class may have the name `train`
        std::erase_if(named, [](const fs::path& path) { return folders_in(path).empty(); });
    }
    PartFolders found;
    for (const fs::path& path : named) {
        const auto part = static_cast<std::size_t>(*part_of(path));
        if (!found[part].empty()) {
            refuse(path,
                   fmt::format("is a {} set, and so is {}; keep one of them", part_names[part], found[part].string()));
        }
        found[part] = path;
    }
    if (named.empty()) {
        found[0] = folder;
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
    if (classes.size() < 2) {
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
        refuse(folder, fmt::format("has {}, but no images in folders of classes; expected PNG or JPEG files such as {}",
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
    for (const fs::path& path : parts[0] == root ? Paths() : entries_of(root)) {
        if (std::find(parts.begin(), parts.end(), path) == parts.end()) {
            notes.skip(path, "files outside of the sets");
        }
    }
}

}  // namespace

std::vector<std::string> unused_validation(const Options& options) {
    std::vector<std::string> unused;
    if (options.kind != Kind::folder || std::holds_alternative<OwnValidation>(options.validation)) {
        return unused;
    }
    for (const std::string& path : paths_of(options)) {
        const fs::path folder = find_parts(path)[static_cast<std::size_t>(Part::validation)];
        if (!folder.empty() && !folders_in(folder).empty()) {
            unused.push_back(folder.string());
        }
    }
    return unused;
}

std::optional<Dataset> read_folder(const fs::path& root, const Options& options, Part part) {
    need_folder(root, "expected a folder with images in folders of classes, as training/cat/1.png");
    if (options.memory == Memory::streamed) {
        refuse_to_stream(root, "its images are compressed", "let tools/images_to_hdf5.py write HDF5");
    }
    const PartFolders parts = find_parts(root);
    const fs::path& folder = parts[static_cast<std::size_t>(part)];
    if (folder.empty() && part != Part::training) {
        return std::nullopt;
    }
    if (folder.empty()) {
        refuse(root, fmt::format("has {}, but no training set; expected {} or {}", contents_text(root),
                                 (root / "training").string(), (root / "train").string()));
    }
    const std::vector<std::string> classes = find_classes(parts, part);
    Notes notes;
    if (part == Part::training) {
        note_outside(root, parts, notes);
    }
    LabelledFiles found = find_labelled(root, folder, classes, part, notes);
    Dataset set;
    set.labels = std::move(found.labels);
    for (const std::size_t index : read_image_files(folder, found.files, options, set)) {
        notes.add("turned as EXIF says", found.files[index]);
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
