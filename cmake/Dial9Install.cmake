# What `cmake --install` lays down: headers, libraries, the package file and pkg-config.
# SPDX-License-Identifier: Apache-2.0
