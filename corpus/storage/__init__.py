"""Files on local disks and object stores: reading, atomic writing, prefetching, retrying."""
