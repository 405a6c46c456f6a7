// A program that records and has no heap samples.
// SPDX-License-Identifier: Apache-2.0
#include "dial9/recorder.h"

int main() { return dial9::recorder_from_env().status.ok() ? 0 : 1; }
