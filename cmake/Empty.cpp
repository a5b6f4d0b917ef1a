// SPDX-License-Identifier: Apache-2.0
//
// The only source of the target that owns the shared precompiled header. It holds nothing; a
// target must have a source to have a header precompiled.
