UPDATE flow SET throughput_bps=9e999,seconds=-9e999,series_bps='[1e999]';
UPDATE run SET cell=4294967295,repeat=0,took_s=-1;
