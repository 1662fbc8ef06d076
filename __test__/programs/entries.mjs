// An ES module that imports the package first, and then all that programs load beside it.

import { parentPort } from 'node:worker_threads';
import { LockManager } from 'sablock';
import * as doctor from 'sablock/doctor';
import * as etcd from 'sablock/etcd';
import * as mysql from 'sablock/mysql';
import * as postgres from 'sablock/postgres';
import * as redis from 'sablock/redis';

const names = [doctor, etcd, mysql, postgres, redis].flatMap((entry) => Object.keys(entry));
parentPort.postMessage([typeof LockManager, ...names.filter((name) => /^[a-z]+$/.test(name) && name !== 'default')]);
