# What ctest runs beside the unit tests (CMakeLists.txt makes those): checks, other builds, fuzzing, real clients.
# Labels: quick = also in ./test --quick. A test that needs another build or a set-up names it as a fixture, so that
# ./test REGEX brings it along. Nothing here may skip: what can't run has failed.

if(KGW_FUZZ)
  file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
  foreach(source ${targets})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE igk_bridge igk_wire igk_iggy igk_base)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
  target_link_libraries(fuzz_iggy_server PRIVATE igk_iggy_server)
  target_link_libraries(fuzz_kept_offsets PRIVATE igk_backend_iggy)
endif()
if(NOT KGW_SUITES)
  return()
endif()

# suite(NAME [QUICK] [ALONE] TIMEOUT seconds [NEEDS fixture...] COMMAND ...)
# ALONE: nothing else runs beside it, because it measures time or loads both cores.
function(suite name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK;ALONE" "TIMEOUT" "NEEDS;COMMAND")
  list(POP_FRONT arg_COMMAND program)
  if(program MATCHES "/")
    cmake_path(ABSOLUTE_PATH program BASE_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
  add_test(NAME ${name} COMMAND ${program} ${arg_COMMAND} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(labels full)
  if(arg_QUICK)
    list(APPEND labels quick)
  endif()
  # pytest and others end well with skipped tests; here that is a failure.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${labels}"
    FAIL_REGULAR_EXPRESSION "[1-9][0-9]* skipped;[1-9][0-9]* xfailed;skip=[1-9];\\[  SKIPPED \\]")
  if(arg_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(arg_NEEDS)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED "${arg_NEEDS}")
  endif()
endfunction()

# other_build(PRESET [QUICK] [targets...]): a build of build/PRESET as a test of its own, and the fixture build.PRESET.
function(other_build preset)
  cmake_parse_arguments(PARSE_ARGV 1 arg "QUICK" "" "")
  set(quick)
  if(arg_QUICK)
    set(quick QUICK)
  endif()
  suite(build.${preset} ${quick} TIMEOUT 600 COMMAND tools/build ${preset} ${arg_UNPARSED_ARGUMENTS})
  set_tests_properties(build.${preset} PROPERTIES FIXTURES_SETUP build.${preset} PROCESSORS 2)
endfunction()

# ---- checks ----

foreach(check layers size words headers format rules)
  suite(check.${check} QUICK TIMEOUT 60 COMMAND tools/check_${check})
endforeach()
suite(check.tools QUICK TIMEOUT 60 COMMAND python3 -m unittest discover -s tests/tools -p "*_test.py")
suite(check.cppcheck TIMEOUT 300 COMMAND tools/check_cppcheck)

# ---- other builds ----

other_build(release QUICK)
other_build(clang)
other_build(fuzz)
set(threaded net store backend_store kafka) # what threads share
list(TRANSFORM threaded APPEND _tests OUTPUT_VARIABLE targets)
other_build(tsan ${targets} iggy-gateway-kafka)

get_property(units GLOBAL PROPERTY KGW_UNITS)
foreach(unit ${units})
  suite(clang.${unit} TIMEOUT 300 NEEDS build.clang COMMAND env build/clang/${unit}_tests)
endforeach()
foreach(unit ${threaded})
  suite(tsan.${unit} TIMEOUT 300 NEEDS build.tsan COMMAND env TSAN_OPTIONS=halt_on_error=1 build/tsan/${unit}_tests)
endforeach()

# ---- fuzzing, 60 s for each target ----

file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${targets})
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE fuzz_ "" short ${name})
  suite(fuzz.${short} TIMEOUT 180 NEEDS build.fuzz COMMAND tests/fuzz/run ${name} 60)
endforeach()

# ---- the release binary, with real programs ----

suite(smoke QUICK TIMEOUT 90 NEEDS build.release COMMAND tests/smoke/run)

suite(setup.python QUICK TIMEOUT 300 COMMAND tests/peers/setup.sh python)
set_tests_properties(setup.python PROPERTIES FIXTURES_SETUP setup.python)
suite(setup.peers TIMEOUT 1500 NEEDS setup.python COMMAND tests/peers/setup.sh)
set_tests_properties(setup.peers PROPERTIES FIXTURES_SETUP setup.peers PROCESSORS 2)

# on_binary(PREFIX BINARY FOLDER ...): the pytest suite of tests/FOLDER on a binary, other arguments as of suite()
function(on_binary prefix binary folder)
  suite(${prefix}${folder} ${ARGN} COMMAND env IGGY_KAFKA_BIN=${binary} tests/pytest ${folder})
endfunction()

foreach(folder app stub probes)
  on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka ${folder} QUICK TIMEOUT 120 NEEDS build.release setup.python)
  on_binary(asan. ${CMAKE_BINARY_DIR}/iggy-gateway-kafka ${folder} QUICK TIMEOUT 120 NEEDS setup.python)
  on_binary(tsan. ${CMAKE_SOURCE_DIR}/build/tsan/iggy-gateway-kafka ${folder} TIMEOUT 120 NEEDS build.tsan setup.python)
endforeach()
foreach(folder hostile quickstart durability groups tls)
  on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka ${folder} ALONE TIMEOUT 600 NEEDS build.release setup.peers)
endforeach()
# Most of it waits for a minute to pass.
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka retention TIMEOUT 200 NEEDS build.release setup.python)
on_binary(asan. ${CMAKE_BINARY_DIR}/iggy-gateway-kafka retention TIMEOUT 200 NEEDS setup.python)
# 10,000 members in 1,000 groups, and the rate of commits.
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka members ALONE TIMEOUT 300 NEEDS build.release setup.peers)
suite(asan.hostile ALONE TIMEOUT 600 NEEDS setup.python
  COMMAND env IGGY_KAFKA_BIN=${CMAKE_BINARY_DIR}/iggy-gateway-kafka ASAN_OPTIONS=quarantine_size_mb=16 tests/pytest hostile -k iggy)
suite(tsan.hostile ALONE TIMEOUT 600 NEEDS build.tsan setup.python
  COMMAND env IGGY_KAFKA_BIN=${CMAKE_SOURCE_DIR}/build/tsan/iggy-gateway-kafka TSAN_OPTIONS=halt_on_error=1 tests/pytest hostile -k iggy)
# Official Iggy SDKs, alone and beside Kafka clients.
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka iggy TIMEOUT 600 NEEDS build.release setup.peers)
on_binary(asan. ${CMAKE_BINARY_DIR}/iggy-gateway-kafka iggy TIMEOUT 600 NEEDS setup.peers)
on_binary(tsan. ${CMAKE_SOURCE_DIR}/build/tsan/iggy-gateway-kafka iggy TIMEOUT 600 NEEDS build.tsan setup.peers)
# Kafka Streams and Kafka Connect, on the embedded log and on the bridge.
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka streams TIMEOUT 600 NEEDS build.release setup.peers)
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka connect TIMEOUT 600 NEEDS build.release setup.peers)
# The gateway in front of a second process, with faults between the two.
on_binary("" ${CMAKE_SOURCE_DIR}/build/release/iggy-gateway-kafka bridge ALONE TIMEOUT 600 NEEDS build.release setup.peers)
on_binary(asan. ${CMAKE_BINARY_DIR}/iggy-gateway-kafka bridge ALONE TIMEOUT 600 NEEDS setup.peers)
suite(asan.sanitized ALONE TIMEOUT 300 NEEDS setup.python COMMAND tests/sanitized/run ${CMAKE_BINARY_DIR}/iggy-gateway-kafka)
suite(tsan.sanitized ALONE TIMEOUT 300 NEEDS build.tsan setup.python COMMAND tests/sanitized/run ${CMAKE_SOURCE_DIR}/build/tsan/iggy-gateway-kafka)

# All clients on Apache Kafka, then on the embedded log and on the bridge, whose answers must be the same.
set(facts ${CMAKE_BINARY_DIR}/kafka-facts.json)
suite(clients.kafka ALONE TIMEOUT 600 NEEDS setup.peers COMMAND tests/clients/compare --on kafka --reference ${facts})
set_tests_properties(clients.kafka PROPERTIES FIXTURES_SETUP clients.kafka)
foreach(place embedded bridge-0.11 bridge-0.12)
  suite(clients.${place} ALONE TIMEOUT 600 NEEDS build.release setup.peers clients.kafka
    COMMAND tests/clients/compare --on ${place} --reference ${facts})
endforeach()

# What other projects test their Kafka clients with.
foreach(name kgo librdkafka librdkafka-admin)
  suite(suites.${name} ALONE TIMEOUT 600 NEEDS build.release setup.peers COMMAND tests/suites/run ${name})
endforeach()
