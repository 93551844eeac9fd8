# finch_version(SOURCE NUMBER GIVEN OUT) sets OUT to the version of the source (see finch/base/version.hpp). The first non-empty
# value counts: FINCH_VERSION, git's description, the text that `git archive` wrote into version_of_archive.txt, the project's number.
#
# As a script: cmake -D SOURCE=FOLDER -D NUMBER=0.1.0 -D FINCH_VERSION=… -D TEMPLATE=FILE -D OUTPUT=FILE -P FinchVersion.cmake
# writes OUTPUT from TEMPLATE if the content has changed. Every build runs this script.
function(finch_version_of_git source number out)
  set(${out} "" PARENT_SCOPE)
  find_program(FINCH_GIT git)
  if(NOT FINCH_GIT OR NOT EXISTS ${source}/.git)  # not in the repository of an enclosing project
    return()
  endif()
  # safe.directory=*: a user who builds this source trusts it, so its owner does not matter. --abbrev=12: a fixed length, because
  # versions are compared.
  set(git ${FINCH_GIT} --no-optional-locks -c safe.directory=* -C ${source})
  execute_process(COMMAND ${git} describe --tags --match "v[0-9]*.[0-9]*.[0-9]*" --abbrev=12 --dirty
                  OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failure)
  if(failure)
    execute_process(COMMAND ${git} describe --always --exclude * --abbrev=12 --dirty
                    OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failure)
    string(PREPEND text "${number}-g")
  endif()
  if(NOT failure)
    set(${out} "${text}" PARENT_SCOPE)
  endif()
endfunction()

function(finch_version_of_archive source number out)
  set(${out} "" PARENT_SCOPE)
  if(EXISTS ${source}/cmake/version_of_archive.txt)
    file(STRINGS ${source}/cmake/version_of_archive.txt lines)
    list(GET lines 0 described)
    list(GET lines -1 commit)
    if(described MATCHES "^v[0-9]")
      set(${out} "${described}" PARENT_SCOPE)
    elseif(commit MATCHES "^[0-9a-f]+$")
      string(SUBSTRING "${commit}" 0 12 commit)
      set(${out} "${number}-g${commit}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(finch_version source number given out)
  set(text "${given}")
  if(NOT text)
    finch_version_of_git(${source} ${number} text)
  endif()
  if(NOT text)
    finch_version_of_archive(${source} ${number} text)
  endif()
  if(NOT text)
    set(text ${number})
  endif()
  string(REGEX REPLACE "^v([0-9])" "\\1" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  finch_version(${SOURCE} ${NUMBER} "${FINCH_VERSION}" FINCH_VERSION_TEXT)
  configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
endif()
