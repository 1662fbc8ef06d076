// The errors of the contract, as `assert.throws` and `assert.rejects` compare them. With an offset, the message must name it.

const described = (code, name, byteOffset) => {
  return byteOffset === undefined ? { code, name } : { code, name, message: new RegExp(`\\b${byteOffset}\\b`) };
};

exports.invalidArgType = (byteOffset) => described('ERR_INVALID_ARG_TYPE', 'TypeError', byteOffset);
exports.outOfRange = () => described('ERR_OUT_OF_RANGE', 'RangeError');
exports.mainThread = (byteOffset) => described('ERR_LOCK_MAIN_THREAD', 'TypeError', byteOffset);
exports.notOwner = (byteOffset) => described('ERR_LOCK_NOT_OWNER', 'Error', byteOffset);
exports.deadlock = (byteOffset) => described('ERR_LOCK_DEADLOCK', 'DeadlockError', byteOffset);
exports.timeout = (byteOffset) => described('ERR_LOCK_TIMEOUT', 'TimeoutError', byteOffset);
exports.corrupt = (byteOffset) => described('ERR_LOCK_CORRUPT', 'Error', byteOffset);
