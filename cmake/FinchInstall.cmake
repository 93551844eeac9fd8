# cmake --install BUILD --prefix DIR installs two components: program and documentation.
#
# bin and share/finch are fixed, not GNUInstallDirs variables: the job script and the module file find the program relative to
# their own folder, so DIR can be moved.
include(GNUInstallDirs)

install(TARGETS finch finch_launcher RUNTIME DESTINATION bin COMPONENT program)
install(PROGRAMS jobs/evolve.sbatch DESTINATION share/finch/jobs COMPONENT program)
install(DIRECTORY configs DESTINATION share/finch COMPONENT program PATTERN __pycache__ EXCLUDE)
install(FILES tools/packaging/modulefile RENAME finch DESTINATION share/finch/modulefiles COMPONENT program)

install(PROGRAMS tools/report.py tools/export.py tools/images_to_hdf5.py tools/fetch_mnist.sh DESTINATION share/finch/tools COMPONENT program)
install(FILES tools/mpi_settings.sh DESTINATION share/finch/tools COMPONENT program)
install(DIRECTORY tools/reporting tools/exporting tools/python DESTINATION share/finch/tools COMPONENT program
  FILES_MATCHING PATTERN *.py PATTERN *.css PATTERN *.js)
# bin/finch-report and bin/finch-export are symbolic links. Python searches the modules of a script in the folder of the link's target.
foreach(script report export)
  file(CREATE_LINK ../share/finch/tools/${script}.py ${CMAKE_BINARY_DIR}/finch-${script} SYMBOLIC)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/finch-${script} DESTINATION bin COMPONENT program)
endforeach()

install(FILES README.md CHANGELOG.md CONTRIBUTING.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT documentation)

# The program prints a description of its command line, which becomes the bash completion.
if(CMAKE_CROSSCOMPILING)
  message(STATUS "No completion for bash: the program that would describe itself does not run here")
  return()
endif()
set(completion ${CMAKE_BINARY_DIR}/completion)
add_custom_command(OUTPUT ${completion}/finch
  COMMAND ${CMAKE_COMMAND} -E make_directory ${completion}
  COMMAND finch --completion-table > ${completion}/table
  COMMAND ${CMAKE_COMMAND} -E cat ${CMAKE_SOURCE_DIR}/tools/packaging/completion.bash ${completion}/table > ${completion}/finch
  DEPENDS finch ${CMAKE_SOURCE_DIR}/tools/packaging/completion.bash
  COMMENT "Completion of finch" VERBATIM)
add_custom_target(finch_completion ALL DEPENDS ${completion}/finch)
install(FILES ${completion}/finch DESTINATION share/bash-completion/completions COMPONENT program)
