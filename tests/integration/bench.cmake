# The benchmark: that it runs and ends, not how fast.
if(TARGET lockstep-bench)
    add_test(NAME bench_smoke COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/bench_smoke.py
                                      $<TARGET_FILE:lockstep-bench>)
    set_tests_properties(bench_smoke PROPERTIES LABELS integration TIMEOUT 240 RUN_SERIAL ON)
    add_dependencies(tests_integration lockstep-bench)
endif()
