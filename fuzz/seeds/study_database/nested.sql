INSERT INTO study VALUES('hosts',replace(hex(zeroblob(9999)),'0','['));
UPDATE part SET plan=plan||'x=[[[[[[[[';
