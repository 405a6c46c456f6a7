// The arena of another process, for the command line. All of it is recorder/arena_reader.h; this
// header is the face of it that programs above the recorder include.
// Spec: docs/spec/recorder.md, "Reading an arena".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recorder/arena_reader.h"
