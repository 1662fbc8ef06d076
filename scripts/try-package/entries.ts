// A user's program in TypeScript that loads every entry of the package. It is compiled as the other is.

import { LockManager } from 'sablock';
import { type Doctor, type DoctorOptions, start } from 'sablock/doctor';
import { etcd } from 'sablock/etcd';
import { mysql } from 'sablock/mysql';
import { postgres } from 'sablock/postgres';
import { redis } from 'sablock/redis';

const stores = [
  etcd('http://127.0.0.1:1'),
  mysql('mysql://127.0.0.1:1/locks'),
  postgres('postgres://127.0.0.1:1/locks'),
  redis('redis://127.0.0.1:1'),
];
const managers: LockManager[] = stores.map((store) => new LockManager({ store }));
const options: DoctorOptions = { lockOrder: false };
const doctor: Doctor = start(options);

Promise.all(managers.map((manager) => manager.close())).then(() => {
  doctor.stop();
  console.log(`The package has ${managers.length} stores, and a doctor.`);
});
