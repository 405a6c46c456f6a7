# Links OBJECTS with LIBRARIES and compares what happens with EXPECT: "ok" (and the program must then
# run), or a text that must be in the linker's output of a failed link.
# SPDX-License-Identifier: Apache-2.0
execute_process(COMMAND ${COMPILER} ${OBJECTS} ${LIBRARIES} -pthread -ldl -o "${OUTPUT}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(EXPECT STREQUAL "ok")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the right build does not link: ${output}")
  endif()
  execute_process(COMMAND "${OUTPUT}" RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the linked program failed: ${result}")
  endif()
else()
  if(result EQUAL 0)
    message(FATAL_ERROR "linked, but must not")
  endif()
  string(FIND "${output}" "${EXPECT}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "failed without naming the cure '${EXPECT}': ${output}")
  endif()
endif()
