'use strict';
// The empty module that load times are measured against.
