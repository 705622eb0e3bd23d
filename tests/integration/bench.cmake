# The benchmark: that it runs and ends, not how fast.
if(TARGET lockstep-bench)
    add_test(NAME bench_smoke COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/bench_smoke.py
                                      $<TARGET_FILE:lockstep-bench>)
    set_tests_properties(bench_smoke PROPERTIES LABELS integration TIMEOUT 240 RUN_SERIAL ON)
    add_dependencies(tests_integration lockstep-bench)
    if(LOCKSTEP_HAS_RDMA)
        add_test(NAME bench_failover_rdma
                 COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/bench_smoke.py $<TARGET_FILE:lockstep-bench>
                         Bench.test_failover_over_rdma_shows_the_fence)
        set_tests_properties(bench_failover_rdma PROPERTIES LABELS "integration;rdma" TIMEOUT 240 RUN_SERIAL ON
                             SKIP_REGULAR_EXPRESSION "no three addresses with RDMA here")
    endif()
endif()

# The comparison with Redis' server: that it runs and ends.
if(TARGET lockstep-counter)
    add_test(NAME bench_against_redis
             COMMAND ${PROJECT_SOURCE_DIR}/tools/bench/against-redis --counter $<TARGET_FILE:lockstep-counter> --rounds 1
                     --requests 20000)
    set_tests_properties(bench_against_redis PROPERTIES LABELS integration TIMEOUT 120 RUN_SERIAL ON
                         PASS_REGULAR_EXPRESSION "ratio [0-9]+[.][0-9][0-9]\n")
endif()
